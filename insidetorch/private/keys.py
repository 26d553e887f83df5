"""Dispatch keys: of a tensor, of a thread, of the release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from insidetorch.private.name import Name, a_tensor, members

if TYPE_CHECKING:
    import torch


def _key_set() -> object:
    return _KEYS_OF.get()(a_tensor())


_KEYS_OF = Name("torch._C._dispatch_keys")
_EXCLUDED = Name("torch._C._dispatch_tls_local_exclude_set")
_KEY_BITS = Name("torch._C.DispatchKeySet.raw_repr", _key_set)
_FULL_SET = Name("torch._C._dispatch_keyset_full")
_BACKENDS = Name("torch._C._dispatch_num_backends")
_BEHIND_AUTOGRAD = Name("torch._C._dispatch_get_backend_keyset_from_autograd")
_INCLUDED = Name("torch._C._dispatch_tls_local_include_set")
_FORCED_SETS = Name("torch._C._ForceDispatchKeyGuard")
_BELOW_AUTOGRAD = Name("torch._C._AutoDispatchBelowAutograd")
_BELOW_VIEWS = Name("torch._C._AutoDispatchBelowADInplaceOrView")
_EXCLUDING = Name("torch._C._ExcludeDispatchKeyGuard")
_INCLUDING = Name("torch._C._IncludeDispatchKeyGuard")
_ZERO_TENSOR = Name("torch._efficientzerotensor")
_FALLBACK_MODE = Name("torch._C._set_autograd_fallback_mode")


def dispatch_keys(tensor: torch.Tensor) -> list[str]:
    """Return the names of the dispatch keys that a tensor carries, the first served last.

    `torch._C._dispatch_keys`; a key set has only its text for the members.
    """
    return members(_KEYS_OF.get()(tensor))


def excluded_keys() -> list[str]:
    """Return the names of the dispatch keys that this thread skips at present.

    `torch._C._dispatch_tls_local_exclude_set`.
    """
    return members(_EXCLUDED.get()())


def dispatch_key_bits(tensor: torch.Tensor) -> int:
    """Return the 64 bits of a tensor's dispatch key set as a number.

    `DispatchKeySet.raw_repr` of what `torch._C._dispatch_keys` returns.
    """
    return int(_KEY_BITS.of(_KEYS_OF.get()(tensor))())


def set_autograd_fallback(mode: str) -> None:
    """Say whether autograd's fallback warns (`"warn"`) or passes a call on (`"nothing"`).

    `torch._C._set_autograd_fallback_mode`.
    """
    _FALLBACK_MODE.get()(mode)


def zero_tensor(*size: int) -> torch.Tensor:
    """Return a tensor of zeros without memory, which carries the key `ZeroTensor`.

    `torch._efficientzerotensor`.
    """
    made: torch.Tensor = _ZERO_TENSOR.get()(size)
    return made


def runtime_keys() -> tuple[list[str], int]:
    """Return the keys that have a place in every operator's table, the first served last.

    The second value says how many of the first are plain backends.
    `torch._C._dispatch_keyset_full` and `_dispatch_num_backends`.
    """
    return members(_FULL_SET.get()()), int(_BACKENDS.get()())


def keys_behind(autograd_key: str) -> list[str]:
    """Return the backend keys that PyTorch ties to an autograd key such as ``AutogradCPU``.

    `torch._C._dispatch_get_backend_keyset_from_autograd`.
    """
    import torch

    return members(_BEHIND_AUTOGRAD.get()(getattr(torch.DispatchKey, autograd_key)))


def key_bits(keys: Any) -> int:
    """Return a key set as a 64-bit integer; for a tensor, the set that it carries.

    `torch._C._dispatch_keys`, `DispatchKeySet.raw_repr`.
    """
    bits: int = (keys if hasattr(keys, "raw_repr") else _KEYS_OF.get()(keys)).raw_repr()
    return bits


def key_set(bits: int) -> Any:
    """Return the `torch.DispatchKeySet` with these bits, such as a kernel passes on."""
    import torch

    return torch.DispatchKeySet.from_raw_repr(bits)


def thread_sets() -> tuple[int, int]:
    """Return the key sets that this thread includes and excludes, as 64-bit integers.

    `torch._C._dispatch_tls_local_include_set` and `…_exclude_set`.
    """
    return _INCLUDED.get()().raw_repr(), _EXCLUDED.get()().raw_repr()


def forced_sets(included: int, excluded: int) -> Any:
    """Return a context in which this thread includes and excludes these key sets.

    `torch._C._ForceDispatchKeyGuard`.
    """
    return _FORCED_SETS.get()(key_set(included), key_set(excluded))


def below_autograd() -> Any:
    """Return a context in which this thread excludes autograd's keys.

    `torch._C._AutoDispatchBelowAutograd`.
    """
    return _BELOW_AUTOGRAD.get()()


def below_inplace_or_view() -> Any:
    """Return a context in which this thread excludes autograd's keys and `ADInplaceOrView`.

    `torch._C._AutoDispatchBelowADInplaceOrView`.
    """
    return _BELOW_VIEWS.get()()


def excluding(key: str) -> Any:
    """Return a context in which this thread excludes one more key, such as ``CPU``.

    `torch._C._ExcludeDispatchKeyGuard`.
    """
    import torch

    return _EXCLUDING.get()(torch.DispatchKeySet(getattr(torch.DispatchKey, key)))


def including(key: str) -> Any:
    """Return a context in which this thread includes one more key, such as ``Meta``.

    `torch._C._IncludeDispatchKeyGuard`.
    """
    import torch

    return _INCLUDING.get()(getattr(torch.DispatchKey, key))
