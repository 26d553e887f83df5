"""What a process of its own tries: a device's name, and a call after its library has gone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from insidetorch.private.name import Name
from insidetorch.processes import run

_LIBRARY: Any = torch.library.Library
_UTILS: Any = torch.utils
_REGISTER_DEVICE_MODULE = Name("torch._register_device_module")


def of_a_device() -> tuple[dict[str, str], bool]:
    """Return what a new process says to each try, and whether a last call ended it by a signal.

    An empty text means that the try raised nothing. The last call is one of an operator that was
    kept in a variable while its library went: it reads freed memory, so a process may survive it.
    """
    for _ in range(5):
        ended = run([sys.executable, "-m", "miniatures.dispatcher.cases_device"])
        if ended.returncode < 0:
            break
    return json.loads(ended.stdout.splitlines()[0]), ended.returncode < 0


def _error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""


def _tries() -> dict[str, str]:
    library = _LIBRARY("named", "DEF")
    library.define("op(Tensor x) -> Tensor")
    rename = _UTILS.rename_privateuse1_backend
    said = {"no module": _error_of(lambda: torch.empty(2, device="privateuseone"))}
    said["in-tree name"] = _error_of(lambda: rename("cuda"))
    rename("mine")
    said["same name"] = _error_of(lambda: rename("mine"))
    said["second name"] = _error_of(lambda: rename("other"))
    for key in ("PrivateUse1", "mine", "MINE", "AutogradMINE"):
        said[key] = _error_of(partial(library.impl, "op", _same, key, allow_override=True))
    _REGISTER_DEVICE_MODULE.get()("mine", SimpleNamespace())
    said["with a module"] = _error_of(lambda: torch.randn(2, device="mine"))
    said["pinned"] = _error_of(lambda: torch.ones(2).pin_memory())
    said["generator"] = _error_of(lambda: torch.Generator(device="mine"))
    said["autocast"] = _error_of(lambda: torch.autocast("mine"))
    said["no guard"] = _error_of(torch.accelerator.current_device_index)
    said["accelerator"] = str(torch.accelerator.current_accelerator())
    own = _LIBRARY("own", "DEF")
    own.define("own::op(Tensor x) -> Tensor")
    said["own name"] = _error_of(own._destroy)
    said["methods"] = ", ".join(_made_methods())
    said["methods again"] = _error_of(_UTILS.generate_methods_for_privateuse1_backend)
    return said


def _made_methods() -> list[str]:
    """Make the methods of the device; return those of each class, of a storage also on request."""
    generate = _UTILS.generate_methods_for_privateuse1_backend
    packed = torch.nn.utils.rnn.PackedSequence
    classes = [torch.Tensor, torch.nn.Module, packed, torch.UntypedStorage]
    generate()
    made = [_methods_of(each) for each in classes]
    generate(for_tensor=False, for_module=False, for_packed_sequence=False, for_storage=True)
    return [*made, _methods_of(torch.UntypedStorage)]


def _methods_of(kind: type) -> str:
    return " ".join(name for name in ("is_mine", "mine") if hasattr(kind, name))


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


def _call_what_is_gone() -> None:
    library = _LIBRARY("gone", "DEF")
    library.define("op(Tensor x) -> Tensor")
    library.impl("op", _same, "CPU")
    kept = torch.ops.gone.op
    del library
    kept(torch.ones(1))


if __name__ == "__main__":
    print(json.dumps(_tries()), flush=True)
    _call_what_is_gone()
