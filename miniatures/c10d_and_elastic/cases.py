"""One program for the miniature and PyTorch: sums over ranks, and nodes that come and go."""

from __future__ import annotations

import random
from typing import Any

import torch
import torch.distributed as dist

from insidetorch import private
from miniatures.c10d_and_elastic.rendezvous import State, first_ranks
from miniatures.c10d_and_elastic.ring import Ring
from miniatures.c10d_and_elastic.store import Client

KINDS = (torch.int64, torch.int32, torch.uint8, torch.float64, torch.float32)


def sums(rank: int, port: int, seeds: list[int]) -> list[dict[str, bool]]:
    """Compare the ring with gloo's all-reduce, on the default group, for each seed.

    :param port: of the miniature's store.
    """
    store, size = Client(port), dist.get_world_size()
    ring = Ring(store, f"ring {seeds[0]}", rank, size)
    found = []
    for seed in seeds:
        known = random.Random(seed)
        kind, length = known.choice(KINDS), known.choice([0, 1, 2, 3, size, 7, 64, 1000, 70_000])
        largest = known.random() < 0.3
        own = torch.Generator().manual_seed(seed * 64 + rank)
        values = torch.randint(0, 9, (length,), generator=own).to(kind)
        if kind.is_floating_point:
            values += torch.rand(length, generator=own, dtype=kind)
        theirs, before = values.clone(), ring.sent
        operation = dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM
        dist.all_reduce(theirs, op=operation)
        ours = ring.all_reduce(values, torch.maximum if largest else torch.add)
        exact = largest or not kind.is_floating_point
        close = torch.equal if exact else torch.allclose
        least = 2 * (size - 1) * (length // size) * kind.itemsize
        found.append(
            {
                "result": bool(close(ours, theirs)),
                "bytes": least <= ring.sent - before <= least + 2 * (size - 1) * kind.itemsize,
            }
        )
    ring.close()
    store.close()
    return found


def schedule(seed: int) -> tuple[int, int, bool, list[tuple[str, str]]]:
    """Return least and most nodes, whether the last call is over at once, and moves of nodes."""
    known = random.Random(seed)
    most = known.randint(1, 4)
    nodes = [f"node{n}" for n in range(known.randint(1, 5))]
    moves, silent = list[tuple[str, str]](), set[str]()
    for _ in range(30):
        alive = [node for node in nodes if node not in silent]
        if not alive:
            break
        node = known.choice(alive)
        what = known.choices(["join", "leave", "silence"], [12, 2, 1])[0]
        silent |= {node} if what == "silence" else set()
        moves.append((what, node))
    return known.randint(1, most), most, known.random() < 0.5, moves


def meeting(seed: int) -> dict[str, bool]:
    """Compare who is inside, waiting and spare after each move, and the ranks in the end."""
    least, most, over, moves = schedule(seed)
    real, state = private.Rendezvous(least, most, over), State()
    silent, equal = set[str](), True
    for what, node in moves:
        if what == "silence":
            real.silence(node)
            silent.add(node)
            continue
        for gone in silent:
            state.leave(gone, least)
        if what == "join":
            done = real.step(node)
            equal &= (state.join(node, least, most, over) is None) == (done == "FINISH")
        else:
            real.step(node, leave=True)
            if node in state.inside:
                state.leave(node, least)
        seen = real.seen(node)
        equal &= seen["inside"] == sorted(state.inside) and seen["round"] == state.round
        equal &= seen["waiting"] == sorted(state.waiting) and seen["complete"] == state.complete
        equal &= seen["spare"] == sorted(state.spare)
    return {"members": equal, "ranks": _ranks_agree(seed)}


def _ranks_agree(seed: int) -> bool:
    known = random.Random(seed)
    workers = {number: known.randint(1, 4) for number in range(known.randint(1, 4))}
    real: dict[int, Any] = private.worker_ranks(workers)
    ours = first_ranks({f"node{number}": count for number, count in workers.items()})
    whole = sum(workers.values())
    return all(
        real[number] == [(ours[f"node{number}"][1] + k, whole) for k in range(count)]
        for number, count in workers.items()
    )
