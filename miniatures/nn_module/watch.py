"""What PyTorch's modules do, seen from outside: hooks in their order, bytes, records of a file."""

from __future__ import annotations

import io
import os
import random
import struct
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.nn.modules.module as everywhere
from torch import Tensor, nn

from insidetorch.errors import BookError
from insidetorch.private.profiler import memory_events


@dataclass(frozen=True)
class Event:
    """Something that ran.

    :param phase: what you called: ``build``, ``call``, ``backward``, ``save``, ``load``.
    :param what: the kind of hook, or a method, such as ``forward()``.
    :param made_by: the function that registers such a hook; empty for a method.
    """

    phase: str
    what: str
    made_by: str = ""


class Layer(nn.Module):
    """A weight and one child, with every method that a hook can surround."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self.note = note
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("count", torch.zeros(1))
        self.last = Negate()

    def forward(self, x: Tensor) -> Tensor:
        """Multiply, then call the child."""
        self.note("forward()")
        result: Tensor = self.last(x * self.weight)
        return result

    def get_extra_state(self) -> int:
        """Give the state dict something that is no tensor."""
        self.note("get_extra_state()")
        return 1

    def set_extra_state(self, state: Any) -> None:
        """Take it back."""
        self.note("set_extra_state()")


class Negate(nn.Module):
    """One operation."""

    def forward(self, x: Tensor) -> Tensor:
        """Return ``-x``."""
        return -x


def every_hook(seed: int | None = None) -> list[Event]:
    """Build, call, differentiate, save and load one layer with hooks of every kind on it.

    The legacy backward hook is deprecated and says so; the warning is not shown.

    :param seed: shuffles the order in which the hooks are registered.
    """
    events: list[Event] = []
    phase = ["build"]

    def note(what: str, made_by: str = "") -> None:
        events.append(Event(phase[0], what, made_by))

    with ExitStack() as removed_at_the_end, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)

        def register(what: str, function: Callable[..., Any], **options: Any) -> None:
            def hook(*args: Any) -> None:
                if not isinstance(args[0], Negate) or what.startswith("legacy"):
                    note(what, function.__name__)

            handle = function(hook, **options)
            if handle is not None:
                removed_at_the_end.callback(handle.remove)

        for kind in ("parameter", "buffer", "module"):
            function = getattr(everywhere, f"register_module_{kind}_registration_hook")
            register(f"global {kind} registration hook", function)
        layer = Layer(note)
        x = torch.ones(2, requires_grad=True)
        todo: list[tuple[str, Callable[..., Any]]] = [
            ("global forward pre-hook", everywhere.register_module_forward_pre_hook),
            ("forward pre-hook", layer.register_forward_pre_hook),
            ("global forward hook", everywhere.register_module_forward_hook),
            ("forward hook", layer.register_forward_hook),
            ("global full backward pre-hook", everywhere.register_module_full_backward_pre_hook),
            ("full backward pre-hook", layer.register_full_backward_pre_hook),
            ("global full backward hook", everywhere.register_module_full_backward_hook),
            ("full backward hook", layer.register_full_backward_hook),
            ("legacy backward hook of the child", layer.last.register_backward_hook),
            ("tensor hook of the weight", layer.weight.register_hook),
            ("post-accumulate hook of the weight", layer.weight.register_post_accumulate_grad_hook),
            ("tensor hook of the input", x.register_hook),
            ("state_dict pre-hook", layer.register_state_dict_pre_hook),
            ("state_dict post-hook", layer.register_state_dict_post_hook),
            ("load pre-hook", layer.register_load_state_dict_pre_hook),
            ("load post-hook", layer.register_load_state_dict_post_hook),
        ]
        if seed is not None:
            random.Random(seed).shuffle(todo)
        for what, function in todo:
            register(what, function)
        phase[0] = "call"
        y = layer(x)
        register("tensor hook of the output", y.register_hook)
        phase[0] = "backward"
        torch.autograd.backward(y.sum())
        phase[0] = "save"
        state = layer.state_dict()
        phase[0] = "load"
        layer.load_state_dict(state)
    return events


def functions_entered(call: Callable[[], object]) -> list[str]:
    """Return the names of the Python functions that `call` enters, without `call` itself."""
    names: list[str] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            names.append(frame.f_code.co_name)

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names[1:]


def instructions(call: Callable[[], object]) -> int:
    """Return how many instructions Python executes in `call`."""
    count = 0

    def watch(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def identity_with(count: int, kind: str = "forward_hook") -> nn.Module:
    """Return a module that gives back its input, with `count` hooks of a kind that do nothing.

    :param kind: as in the name of the method, without ``register_``.
    """
    module = nn.Identity()
    for _ in range(count):
        getattr(module, f"register_{kind}")(lambda *args: None)
    return module


def compiled(
    model: nn.Module, x: Tensor, *, in_place: bool
) -> tuple[Callable[[Tensor], Tensor], int]:
    """Compile `model`, call it once, and return what to call and how many graphs were captured.

    :param in_place: by `model.compile()`, otherwise by `torch.compile(model)`.
    """
    torch.compiler.reset()
    graphs: list[Any] = []

    def backend(captured: Any, example_inputs: Any) -> Any:
        graphs.append(captured)
        return captured

    call: Any = model
    if in_place:
        model.compile(backend=backend)
    else:
        call = torch.compile(model, backend=backend)
    call(x)
    return call, len(graphs)


@dataclass(frozen=True)
class Bytes:
    """What a piece of code asked of the CPU allocator.

    :param total: bytes asked for.
    :param kept: bytes held at the end, over what was held before.
    :param peak: the most bytes held at one time, over what was held before.
    """

    total: int
    kept: int
    peak: int


def allocated(function: Callable[[], object]) -> Bytes:
    """Run `function` and count the bytes of tensors that it allocates on the CPU.

    Releasing what was held before makes `kept` and `peak` smaller.
    """
    events = byte_events(function)
    levels = list(accumulate(events, initial=0))
    return Bytes(sum(size for size in events if size > 0), levels[-1], max(levels))


def byte_events(function: Callable[[], object]) -> list[int]:
    """Run `function` and return the bytes that it asks of the CPU, and gives back, in order."""
    with _quiet():
        return list(memory_events(function))


@contextmanager
def _quiet() -> Iterator[None]:
    """Send what libraries write to the standard error to nowhere: the profiler reports there."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def own_memory() -> int:
    """Return the bytes of this process that are in memory and are not pages of a file.

    From ``RssAnon`` in ``/proc/self/status``.

    :raises BookError: the system has no such file.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith("RssAnon:")]
    if not kilobytes:
        raise BookError(
            "own_memory() found no RssAnon in /proc/self/status: run the cell on Linux, or skip it."
        )
    return kilobytes[0] * 1024


@dataclass(frozen=True)
class Record:
    """One record of a checkpoint: its name, its bytes, and where they begin in the file."""

    name: str
    size: int
    offset: int
    compressed: bool


def records(file: str | Path | io.BytesIO) -> list[Record]:
    """Return the records of a checkpoint in the order they are stored."""
    raw = file.getvalue() if isinstance(file, io.BytesIO) else Path(file).read_bytes()
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        found = []
        for item in archive.infolist():
            name, extra = struct.unpack_from("<HH", raw, item.header_offset + 26)
            start = item.header_offset + 30 + name + extra  # a local header has 30 fixed bytes
            packed = item.compress_type != zipfile.ZIP_STORED
            found.append(Record(item.filename, item.file_size, start, packed))
    return found


def storages(value: object) -> list[int]:
    """Return the bytes of each storage that `torch.save` writes for `value`."""
    return [record.size for record in records(saved(value)) if "/data/" in record.name]


def saved(value: object) -> io.BytesIO:
    """Return what `torch.save` writes for `value`, ready to be read."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file
