"""What autocast does, seen from outside: its policies, its casts, the bytes that are kept."""

from __future__ import annotations

import mmap
import re
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from insidetorch.errors import BookError
from insidetorch.private.modes import fake_tensor_mode
from insidetorch.private.tables import registered_for
from insidetorch.watch.modes import each_call
from insidetorch.watch.ops import record

POLICIES = ("lower_precision_fp", "fp32", "fp32_set_opt_dtype", "fp32_append_dtype", "promote")
_DEVICES = {"cpu": 0, "cuda": 1, "xpu": 12, "mps": 13, "mtia": 20}  # c10::DeviceType
_WRAPPER = re.compile(
    rb"13WrapFunction_ILNS0_10CastPolicyE(\d)ELN3c1010DeviceTypeE(\d+)E"
    rb"[^\0]*?4_ops(\d+)(\w+?)4callE"
)


@cache
def _instances() -> dict[tuple[int, str], str]:
    """Return (device type, operator) → policy for each wrapper template in the library.

    Each kernel that autocast registers is an instance of the template `WrapFunction_`; its symbol
    names the policy, the device type and the operator.
    """
    folder = Path(torch.__file__).parent / "lib"
    libraries = [p for p in folder.glob("libtorch_cpu.*") if p.suffix in (".so", ".dylib")]
    found: dict[tuple[int, str], str] = {}
    for library in libraries:
        with (
            library.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            for match in _WRAPPER.finditer(data):
                name = match[4][: int(match[3])].decode()
                found[int(match[2]), name] = POLICIES[int(match[1])]
    return found


def policies(device: str) -> dict[str, str]:
    """Return operator → policy for every operator that autocast handles on a device.

    The operators are those registered for the device's autocast key. The policy of each is read
    from the symbols of the library; an operator whose kernel is no instance of the template
    has the policy ``other``.

    :param device: such as ``"cpu"`` or ``"cuda"``.
    :raises BookError: another device, or a library without symbols.
    """
    if device not in _DEVICES:
        raise BookError(f"policies({device!r}): give one of {', '.join(_DEVICES)}.")
    instances = _instances()
    if not instances:
        raise BookError(
            "policies(…) found no symbols of autocast in libtorch_cpu: "
            "use a release wheel for Linux, whose libraries have them."
        )
    table = {}
    for registered in registered_for(f"Autocast{device.upper()}"):
        name = registered.removeprefix("aten::")
        table[name] = instances.get((_DEVICES[device], name.replace(".", "_")), "other")
    return table


def casts(fn: Callable[[], object]) -> list[str]:
    """Run `fn` and return the casts that reached the backend, ``f32[4] → bf16[4]``, in order."""
    ops = [op for op in record(fn) if op.name == "aten::_to_copy.default"]
    return [f"{op.inputs.split(', dtype')[0]} → {op.outputs}" for op in ops]


def trace(fn: Callable[[], object]) -> list[tuple[str, str, str]]:
    """Run `fn` and return every operator that reached the backend with its inputs and outputs.

    Casts that follow one another are sorted: in which order the arguments of one call are cast is
    the C++ compiler's choice.
    """
    found: list[tuple[str, str, str]] = []
    pending: list[tuple[str, str, str]] = []
    for op in record(fn):
        row = (op.name, op.inputs, op.outputs)
        if op.name.startswith("prim::"):
            continue
        if op.name == "aten::_to_copy.default":
            pending.append(row)
            continue
        found += [*sorted(pending), row]
        pending = []
    return found + sorted(pending)


def on_fake_cuda(fn: Callable[[Callable[..., Tensor]], Any]) -> Any:
    """Run `fn` with PyTorch's own CUDA autocast on tensors that have no memory; no GPU is needed.

    `torch.autocast` refuses without a GPU, so its switch is thrown directly. Tensors must not
    require a gradient: a build without CUDA has no engine for the device.

    :param fn: gets a function that makes such a tensor: ``make(4, 4, dtype=torch.float16)``.
    """

    def make(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device="cuda")

    before = torch.is_autocast_enabled("cuda")
    with fake_tensor_mode():
        torch.set_autocast_enabled("cuda", True)
        try:
            return fn(make)
        finally:
            torch.set_autocast_enabled("cuda", before)


def saved_bytes(fn: Callable[[], object], besides: Iterable[Tensor] = ()) -> dict[str, int]:
    """Run `fn` and return the bytes that autograd saved for backward, by type.

    A memory that several nodes saved counts once.

    :param besides: tensors whose memory is not counted, such as the parameters.
    """
    known = {tensor.untyped_storage().data_ptr() for tensor in besides}
    sizes: dict[int, tuple[str, int]] = {}

    def pack(tensor: Tensor) -> Tensor:
        memory = tensor.untyped_storage()
        if memory.data_ptr() not in known:
            sizes[memory.data_ptr()] = (str(tensor.dtype)[6:], memory.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        kept = fn()
    totals: dict[str, int] = {}
    for dtype, size in sizes.values():
        totals[dtype] = totals.get(dtype, 0) + size
    del kept
    return totals


def by_policy(table: Mapping[str, str]) -> dict[str, list[str]]:
    """Return policy → its operators in order."""
    groups: dict[str, list[str]] = {}
    for name, policy in table.items():
        groups.setdefault(policy, []).append(name)
    return groups


class CastsAlive:
    """A region that knows which casts made in it are still in memory."""

    def __init__(self) -> None:
        self._made: list[weakref.ref[Tensor]] = []

    def __enter__(self) -> CastsAlive:
        made = self._made

        def note(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
            result = func(*args, **kwargs)
            if func is torch.ops.aten._to_copy.default:
                made.append(weakref.ref(result))
            return result

        self._mode = each_call(note)
        self._mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)

    @property
    def nbytes(self) -> int:
        """Bytes of the casts that something still holds."""
        return sum(cast.nbytes for made in self._made if (cast := made()) is not None)
