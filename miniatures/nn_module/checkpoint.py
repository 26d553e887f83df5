"""Reading a checkpoint of `torch.save` in miniature: a zip file, a pickle, and raw bytes.

The pickle may name only what `ALLOWED` lists, which is the idea behind `weights_only=True`.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


def read(file: str | Path | io.BytesIO) -> Any:
    """Return what was saved; tensors of one storage share it again.

    :raises pickle.UnpicklingError: the pickle names something that is not allowed.
    """
    with zipfile.ZipFile(file) as archive:
        return Reader(archive).load()


class Reader(pickle.Unpickler):
    """Unpickles ``data.pkl``, and fetches each storage from a record of its own."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        super().__init__(io.BytesIO(archive.read(pickled)))
        self.archive, self.folder = archive, pickled.removesuffix("data.pkl")
        self.storages: dict[str, Tensor] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Look a global up in the list, instead of importing it."""
        full = f"{module}.{name}"
        if full not in ALLOWED:
            raise pickle.UnpicklingError(f"{full} is not on the list of what may be loaded")
        return ALLOWED[full]

    def persistent_load(self, saved_id: Any) -> Tensor:
        """Return a storage, as a flat tensor over the bytes of its record."""
        _, dtype, key, _, _ = saved_id
        if key not in self.storages:
            raw = bytearray(self.archive.read(f"{self.folder}data/{key}"))
            empty = torch.empty(0, dtype=dtype)
            self.storages[key] = torch.frombuffer(raw, dtype=dtype) if raw else empty
        return self.storages[key]


def rebuild(
    storage: Tensor, offset: int, size: Sequence[int], stride: Sequence[int], grad: bool, _: Any
) -> Tensor:
    """Return the tensor that a storage, an offset, a size and strides describe."""
    return storage.as_strided(size, stride, offset).requires_grad_(grad)


ALLOWED: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict,
    "torch._utils._rebuild_tensor_v2": rebuild,
    "torch._utils._rebuild_parameter": lambda data, grad, hooks: nn.Parameter(data, grad),
    "torch.FloatStorage": torch.float32,
    "torch.DoubleStorage": torch.float64,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.LongStorage": torch.int64,
    "torch.BoolStorage": torch.bool,
}
