"""Where tensors and storages lie, who owns them, and copies that wait for a write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from insidetorch.private.name import Name, a_tensor

if TYPE_CHECKING:
    import torch


def _storage() -> object:
    return a_tensor().untyped_storage()  # type: ignore[attr-defined]


_CDATA = Name("torch.Tensor._cdata", a_tensor)
_STORAGE_CDATA = Name("torch.UntypedStorage._cdata", _storage)
_USE_COUNT = Name("torch.Tensor._use_count", a_tensor)
_STORAGE_USE_COUNT = Name("torch._C._storage_Use_Count")
_DATA_ADDRESS = Name("torch._C._data_address")
_LAZY_CLONE = Name("torch._lazy_clone")
_IS_COW = Name("torch._C._is_cow_tensor")
_BASE = Name("torch.Tensor._base", a_tensor)


def tensor_address(tensor: torch.Tensor) -> int:
    """Return the address of the TensorImpl of a tensor.

    `Tensor._cdata`.
    """
    return int(_CDATA.of(tensor))


def storage_address(storage: torch.UntypedStorage) -> int:
    """Return the address of the StorageImpl of a storage.

    `UntypedStorage._cdata`.
    """
    return int(_STORAGE_CDATA.of(storage))


def use_count(tensor: torch.Tensor) -> int:
    """Return how many owners the TensorImpl of a tensor has; its Python object is one.

    `Tensor._use_count`.
    """
    return int(_USE_COUNT.of(tensor)())


def storage_use_count(storage: torch.UntypedStorage) -> int:
    """Return how many owners the StorageImpl of a storage has; its Python object is one.

    `torch._C._storage_Use_Count`.
    """
    return int(_STORAGE_USE_COUNT.get()(storage_address(storage)))


def data_address(tensor: torch.Tensor) -> int:
    """Return where the memory of a tensor's storage begins, without asking for write access.

    `torch._C._data_address`; `data_ptr` would end a lazy clone.
    """
    return int(_DATA_ADDRESS.get()(tensor))


def lazy_clone(tensor: torch.Tensor) -> torch.Tensor:
    """Return a clone that shares the memory until one of the two is written.

    `torch._lazy_clone`.
    """
    clone: torch.Tensor = _LAZY_CLONE.get()(tensor)
    return clone


def is_copy_on_write(tensor: torch.Tensor) -> bool:
    """Tell whether the next write to a tensor makes a copy of its memory, or takes it over.

    `torch._C._is_cow_tensor`.
    """
    return bool(_IS_COW.get()(tensor))


def root_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the tensor at the start of a chain of views, which autograd keeps; None for no view.

    `Tensor._base`.
    """
    root: torch.Tensor | None = _BASE.of(tensor)
    return root
