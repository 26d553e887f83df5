"""Watch DDP: its buckets, its collectives, its timeline, and what it reports about itself.

The private names of PyTorch that the chapter on DDP needs are all in this file.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

from insidetorch.watch.modes import each_call
from miniatures.ddp.watch_ranks import local_interface, loopback


class Branches(nn.Module):
    """Two layers of which each forward may leave one out."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor, left: bool = True, right: bool = True) -> torch.Tensor:
        """Apply the layers that are asked for."""
        x = self.left(x) if left else x
        return torch.as_tensor(self.right(x) if right else x)


class Backwards(nn.Module):
    """Layers that are applied in the order opposite to their definition."""

    def __init__(self, width: int = 8, count: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the last layer first."""
        for layer in reversed(self.layers):
            x = layer(x)
        return x


class Twice(nn.Module):
    """A layer that is applied twice, each time under a checkpoint; `alone` or after another."""

    def __init__(self, alone: bool, reentrant: bool) -> None:
        super().__init__()
        self.first = nn.Identity() if alone else nn.Linear(8, 8)
        self.layer, self.reentrant = nn.Linear(8, 8), reentrant

    def forward(self, x: torch.Tensor) -> Any:
        """Apply the layers; backward computes what the checkpoints dropped again."""
        x = self.first(x)
        for _ in range(2):
            x = checkpoint(self.layer, x, use_reentrant=self.reentrant)
        return x


def chain(count: int = 4, width: int = 8, seed: int = 0) -> nn.Sequential:
    """Return `count` square linear layers, one after the other, the same ones on each rank."""
    torch.manual_seed(seed)
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(count)])


def reducible(module: nn.Module) -> list[nn.Parameter]:
    """Return the parameters in the order in which DDP numbers them."""
    return [param for param in module.parameters() if param.requires_grad]


def error_of(function: Callable[[], object]) -> str:
    """Return the message of the RuntimeError that a call raises; empty if it raises none."""
    try:
        function()
    except RuntimeError as error:
        return str(error)
    return ""


def wait_for(path: Path, patience: float) -> None:
    """Wait until there is a file, at most `patience` seconds."""
    end = time.monotonic() + patience
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)


def report(ddp: DDP) -> dict[str, Any]:
    """Return what DDP's logger has collected: `DistributedDataParallel._get_ddp_logging_data`."""
    return dict(ddp._get_ddp_logging_data())  # type: ignore[no-untyped-call]


def mixed_precision(dtype: torch.dtype) -> Any:
    """Return DDP's own setting for computing and reducing in a type: `_MixedPrecision`."""
    from torch.nn.parallel import distributed

    return distributed._MixedPrecision(param_dtype=dtype, reduce_dtype=dtype)


def default_caps() -> tuple[int, int]:
    """Return the default caps, in bytes: of the first rebuilt bucket, and of the others."""
    with fake_ranks(2):
        told = report(DDP(nn.Linear(1, 1)))
    first: int = dist._DEFAULT_FIRST_BUCKET_BYTES  # type: ignore[attr-defined]
    return first, int(told["bucket_cap_bytes"])


def default_assignment(params: Sequence[torch.Tensor], caps: list[int]) -> list[list[int]]:
    """Return the buckets that PyTorch itself forms: `dist._compute_bucket_assignment_by_size`."""
    assign = dist._compute_bucket_assignment_by_size  # type: ignore[attr-defined]
    buckets: list[list[int]] = assign(list(params), caps)[0]
    return buckets


@dataclass
class Bucket:
    """A bucket as a communication hook sees it.

    :param params: the numbers of its parameters.
    :param after: how many gradients were complete when the hook was called.
    """

    index: int
    params: list[int]
    nbytes: int
    after: int


def bucket_log(ddp: DDP, waits: bool = True) -> list[Bucket]:
    """Register a communication hook that averages as DDP does, and return the list it fills.

    :param waits: false for a group that communicates nothing, whose work has no result.
    """
    number = {param: i for i, param in enumerate(reducible(ddp.module))}
    log: list[Bucket] = []
    arrived: set[int] = set()
    for i, param in enumerate(number):
        hooked: Any = param
        hooked.register_post_accumulate_grad_hook(lambda _, i=i: arrived.add(i))

    def hook(_: object, bucket: Any) -> Any:
        flat = bucket.buffer()
        params = [number[param] for param in bucket.parameters()]
        log.append(Bucket(bucket.index(), params, flat.nbytes, len(arrived)))
        if bucket.is_last():
            arrived.clear()
        flat.div_(dist.get_world_size())
        work = dist.all_reduce(flat, async_op=True)
        if waits:
            return work.get_future().then(lambda done: done.value()[0])
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        done.set_result(flat)
        return done

    hook.__annotations__ = {}  # DDP compares them with types, and these are strings
    ddp.register_comm_hook(None, hook)
    return log


@dataclass(frozen=True)
class Collective:
    """One call of a collective operation: its name, how many numbers it took, of which type."""

    name: str
    numel: int
    dtype: str

    @property
    def nbytes(self) -> int:
        """Return the size of what this rank put in."""
        return self.numel * int(getattr(torch, self.dtype).itemsize)


def collectives(function: Callable[[], object]) -> list[Collective]:
    """Return the collective operations that a call starts from this thread, in order.

    They are operators of the namespace ``c10d``, and a dispatch mode sees them.
    """
    found: list[Collective] = []

    def note(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if func.namespace == "c10d":
            tensors = list(_tensors(args[1] if "gather" in func.name() else args[0]))
            name = func.name().removeprefix("c10d::").partition(".")[0].rstrip("_")
            kind = str(tensors[0].dtype).removeprefix("torch.")
            found.append(Collective(name, sum(t.numel() for t in tensors), kind))
        return func(*args, **kwargs)

    with each_call(note):
        function()
    return found


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


@contextmanager
def fake_ranks(count: int) -> Iterator[None]:
    """Make this process rank 0 of `count` in a group that communicates nothing.

    The backend ``fake`` comes with ``torch.testing._internal.distributed.fake_pg``.
    """
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=count, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextmanager
def one_rank(backend: str = "gloo") -> Iterator[None]:
    """Make this process the only rank of a group, for as long as the block lasts."""
    with TemporaryDirectory(prefix="rank-") as folder:
        store = dist.FileStore(f"{folder}/store", 1)  # type: ignore[attr-defined]
        with local_interface():
            dist.init_process_group(backend, store=store, rank=0, world_size=1)
        try:
            yield
        finally:
            dist.destroy_process_group()


def operators_in(step: Callable[[], object]) -> list[str]:
    """Profile a call and return the names of the operators and of the reducer's marks, in order."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as seen:
        step()
    return [event.name for event in seen.events()]


_CRASH = """
import faulthandler, tempfile, torch, torch.distributed as dist
faulthandler.enable()
folder = tempfile.TemporaryDirectory()
store = dist.FileStore(folder.name + "/store", 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
cpu = torch.device("cpu")
print(type(dist.group.WORLD._get_backend(cpu)).__name__, flush=True)
torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
print("constructed", flush=True)
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Ended:
    """How a process ended: what it printed, the signal that killed it, its innermost frames."""

    printed: list[str]
    signal: str
    python: list[str]


def construct_under(level: str, timeout: float = 600) -> Ended:
    """Construct a DDP module on one gloo rank, in a process of its own, at a debug level."""
    done = subprocess.run(
        [sys.executable, "-c", _CRASH],
        env={**os.environ, **loopback(), "TORCH_DISTRIBUTED_DEBUG": level},
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    lines = (done.stdout + done.stderr).splitlines()
    printed = [line for line in lines if re.fullmatch(r"_?ProcessGroup\w+|constructed", line)]
    killed = signal.Signals(-done.returncode).name if done.returncode < 0 else ""
    frames = [line.split()[-1] for line in lines if line.startswith("  File ")]
    return Ended(printed, killed, frames)
