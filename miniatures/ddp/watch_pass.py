"""Record one backward pass on a rank: its layers, its copies, and every all-reduce to its end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from miniatures.ddp.watch import chain


@dataclass(frozen=True)
class Piece:
    """Something that took time on a rank.

    :param lane: ``backward`` or ``all-reduce``.
    :param name: the number of the layer, or of the bucket with its layers.
    :param start: seconds on the clock that the processes of one machine share; `end` too.
    :param turn: how many pieces of backward had begun on this rank when it began.
    """

    rank: int
    lane: str
    name: str
    start: float
    end: float
    turn: int


def record_pass(
    rank: int, layers: int, width: int, rows: int, cap: float, skip: int = 2
) -> list[Piece]:
    """Run `skip` passes, then one that is recorded; return its pieces, by their start.

    :param cap: of the buckets, in MiB.
    """
    model, found, running = DDP(chain(layers, width), bucket_cap_mb=cap), list[Piece](), {}
    number = {param: at for at, layer in enumerate(model.module) for param in layer.parameters()}
    begun = 0

    def hook(_: object, bucket: Any) -> Any:
        inside = sorted({number[param] + 1 for param in bucket.parameters()}, reverse=True)
        name = f"{bucket.index()}: {', '.join(map(str, inside))}"
        start, turn = time.perf_counter(), begun
        flat = bucket.buffer().div_(dist.get_world_size())
        work = dist.all_reduce(flat, async_op=True)

        def ended(done: Any) -> torch.Tensor:
            found.append(Piece(rank, "all-reduce", name, start, time.perf_counter(), turn))
            return torch.as_tensor(done.value()[0])

        return work.get_future().then(ended)

    hook.__annotations__ = {}
    model.register_comm_hook(None, hook)

    def before(at: int) -> Any:
        def note(_: object) -> None:
            nonlocal begun
            begun += 1
            running[at] = time.perf_counter()

        return note

    def after(at: int) -> Any:
        def note(*_: object) -> None:
            start = running[at]
            found.append(Piece(rank, "backward", str(at + 1), start, time.perf_counter(), at))

        return note

    for _ in range(skip + 1):
        found.clear()
        begun, x = 0, torch.ones(rows, width)
        loss = model(x).sum()
        node: Any = loss.grad_fn
        for at in reversed(range(layers)):
            node = next(back for back, _ in node.next_functions if "Addmm" in back.name())
            node.register_prehook(before(at))
            node.register_hook(after(at))
        dist.barrier()
        loss.backward()
    return sorted(found, key=lambda piece: piece.start)


def moments(pieces: Sequence[Piece]) -> list[tuple[float, Piece, str]]:
    """Return the beginnings and ends of all pieces, in order, in milliseconds from the first."""
    zero = min(piece.start for piece in pieces)
    begins = [((piece.start - zero) * 1e3, piece, "begins") for piece in pieces]
    ends = [((piece.end - zero) * 1e3, piece, "ends") for piece in pieces]
    return sorted(begins + ends, key=lambda moment: moment[0])
