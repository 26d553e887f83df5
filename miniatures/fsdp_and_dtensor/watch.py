"""Watch tensors on many ranks: what is sent, what each rank has, what `fully_shard` holds when."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from insidetorch import private
from insidetorch.private.modes import dispatch_mode
from miniatures.ddp.watch import fake_ranks


@contextmanager
def local_mesh(*shape: int, names: Sequence[str] = ()) -> Iterator[Any]:
    """Let this process be so many ranks at once, each with its own values; yield their mesh.

    Collectives exchange real values, within the process. The group is gone after the block.
    """
    from torch.distributed.device_mesh import init_device_mesh

    count = 1
    for size in shape:
        count *= size
    with fake_ranks(count), private.local_ranks(count):
        yield init_device_mesh("cpu", shape, mesh_dim_names=tuple(names) or None)


@contextmanager
def counted_mesh(*shape: int, names: Sequence[str] = ()) -> Iterator[Any]:
    """Make this process rank 0 of so many that exchange nothing: shapes and counts are real."""
    from torch.distributed.device_mesh import init_device_mesh

    count = 1
    for size in shape:
        count *= size
    with fake_ranks(count):
        yield init_device_mesh("cpu", shape, mesh_dim_names=tuple(names) or None)


def parts(tensor: Any) -> list[Tensor]:
    """Return what each rank has of a tensor, under `local_mesh`; elsewhere what this one has."""
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return [_plain(value) for value in private.rank_values(_plain(local))]


def whole(tensor: Any) -> Tensor:
    """Return the full value of a DTensor as a plain tensor, that of rank 0 under `local_mesh`."""
    return _plain(private.rank_values(_plain(tensor.full_tensor()))[0])  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    return value.wait() if hasattr(value, "wait") else value


@dataclass(frozen=True)
class Sent:
    """One collective that was started: its name, and the bytes of what a rank gets from it."""

    name: str
    nbytes: int


_SPACES = ("c10d", "_c10d_functional", "c10d_functional", "_dtensor")
_MOVES = ("gather", "reduce", "scatter", "broadcast", "alltoall")


def traffic(function: Callable[[], Any]) -> tuple[list[Sent], Any]:
    """Return the collectives that a call starts from this thread, and what it returned.

    Those of DTensor, of the namespaces ``_c10d_functional`` and ``_dtensor``, and those of
    ``fully_shard``, of the namespace ``c10d``.
    """
    from torch.distributed.tensor import DTensor

    found: list[Sent] = []

    class Mode(dispatch_mode()):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if any(issubclass(kind, DTensor) for kind in types):
                return NotImplemented  # let DTensor take itself apart first
            result = func(*args, **(kwargs or {}))
            name = func.name().partition("::")[2].partition(".")[0].strip("_")
            if func.namespace in _SPACES and any(word in name for word in _MOVES):
                value = args[0] if func.namespace == "c10d" else result
                value = value[0] if isinstance(value, (list, tuple)) else value
                value = value[0] if isinstance(value, (list, tuple)) else value
                size = private.rank_values(value)[0].nbytes
                found.append(Sent(name.removesuffix("_base"), size))
            return result

    with Mode():
        result = function()
    return found, result


def said(function: Callable[[], Any]) -> str:
    """Return what a call raises: the first line of its message; empty if it raises nothing."""
    try:
        function()
    except Exception as error:
        return (str(error).splitlines() or [type(error).__name__])[0] or type(error).__name__
    return ""


class Encoder(nn.Linear):
    """A linear layer that offers its computation under another name too."""

    def encode(self, x: Tensor) -> Tensor:
        """Compute what forward computes, without its hooks."""
        return nn.functional.linear(x, self.weight, self.bias)


def stack(layers: int = 3, width: int = 64, seed: int = 0) -> nn.Sequential:
    """Return square linear layers, one after the other, the same on each rank."""
    torch.manual_seed(seed)
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)])


def sharded(
    model: nn.Sequential, mesh: Any = None, count: int | None = None, **options: Any
) -> Any:
    """Apply `fully_shard` to the first `count` layers, each alone, then to the whole model."""
    from torch.distributed.fsdp import fully_shard

    for layer in list(model)[:count]:
        fully_shard(layer, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


@dataclass(frozen=True)
class Moment:
    """The state of all groups after one of them did something.

    :param what: ``asks``, ``has``, ``full`` (its gradients are), ``frees`` or ``reduces``.
    :param who: the group; ``by`` is the part of FSDP that decided it.
    :param held: for each group what it holds, in bytes, by kind.
    """

    what: str
    who: str
    by: str
    held: dict[str, dict[str, int]]


_DECIDES = {
    "_backward_prefetch": "prefetch", "_prefetch_unshard": "prefetch", "pre_forward": "forward",
    "post_forward": "forward", "pre_backward": "backward", "post_backward": "backward",
    "_root_post_backward_final_callback": "end of backward",
}  # fmt: skip


def record_step(rank: int, layers: int, width: int, wrapped: int, **options: Any) -> list[Moment]:
    """Shard a stack on the ranks of the default group; record one forward and one backward.

    :param wrapped: how many of the layers get a group of their own; the root has the others.
    """
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    model = sharded(stack(layers, width), mesh, wrapped, **options)
    x = torch.ones(4, width, requires_grad=True)
    model(x).sum().backward()  # the first pass finds the root; the second is recorded
    model.zero_grad()
    groups = {f"layer {at}": private.parameter_group(model[at]) for at in range(wrapped)}
    if wrapped < layers:
        groups["root"] = private.parameter_group(model)
    names = {id(group): name for name, group in groups.items()}
    found: list[Moment] = []

    waiting: set[int] = set()

    def note(what: str, group: Any) -> None:
        held = {name: private.group_bytes(group) for name, group in groups.items()}
        if what == "asks":
            if id(group) in waiting or held[names[id(group)]]["gathered"]:
                return
            waiting.add(id(group))
        elif found and held == found[-1].held:
            return
        elif what == "has":
            waiting.discard(id(group))
        calls = [frame.name for frame in traceback.extract_stack()]
        by = next((_DECIDES[name] for name in reversed(calls) if name in _DECIDES), "")
        found.append(Moment(what, names[id(group)], by, held))

    with private.watch_groups(note):
        model(x).sum().backward()
    return found


class SentHalf(Tensor):
    """A weight of `fully_shard` that keeps its type and is gathered in bfloat16."""

    value: Tensor

    @staticmethod
    def __new__(cls, value: Tensor) -> SentHalf:
        made: SentHalf = private.wrapper_tensor(cls, value, requires_grad=value.requires_grad)
        made.value = value
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Compute with the value; what cuts or copies the weight stays of this class."""

        def inner(given: Any) -> Any:
            return given.value if isinstance(given, cls) else given

        def outer(made: Any) -> Any:
            return cls(made) if isinstance(made, Tensor) else made

        out = func(*private.each_leaf(inner, args), **private.each_leaf(inner, kwargs or {}))
        return args[0] if func is torch.ops.aten.copy_.default else private.each_leaf(outer, out)

    def fsdp_pre_all_gather(
        self, mesh: Any, size: Any, stride: Any, module: Any, policy: Any
    ) -> tuple[Any, Any]:
        """Return the tensors to send, and what to remember."""
        return (self.value.bfloat16(),), None

    def fsdp_post_all_gather(
        self, came: Any, remembered: Any, dtype: Any, *, out: Any = None
    ) -> Any:
        """Make the weight of what came, or write it into `out`, which an earlier call made."""
        if out is not None:
            return out.copy_(came[0]) and None
        whole_weight = came[0].to(dtype)
        return whole_weight, (whole_weight,)
