"""Random programs on placed tensors, and random layers, for the miniatures and for PyTorch."""

from __future__ import annotations

import copy
import random
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from miniatures.fsdp_and_dtensor import placed
from miniatures.fsdp_and_dtensor.layer import ShardedLinear
from miniatures.fsdp_and_dtensor.watch import local_mesh, parts, traffic, whole

NAMES = {"all_gather_into_tensor": "all-gather", "all_reduce": "all-reduce",
         "reduce_scatter_tensor": "reduce-scatter", "shard_dim_alltoall": "all-to-all"}  # fmt: skip
OPS: dict[str, Any] = {"matmul": (torch.mm, placed.MATMUL), "add": (torch.add, placed.ADD),
       "relu": (torch.relu, placed.curve)}  # fmt: skip


def placement(where: str) -> Any:
    """Return PyTorch's placement for a name of the miniature's."""
    from torch.distributed.tensor import Partial, Replicate, Shard

    return {"R": Replicate(), "P": Partial()}.get(where) or Shard(int(where[1]))


def name_of(kind: Any) -> str:
    """Return the miniature's name for a placement of PyTorch's."""
    return f"S{kind.dim}" if kind.is_shard() else "R" if kind.is_replicate() else "P"


def distributed(value: Tensor, where: str, mesh: Any) -> Any:
    """Place a tensor as PyTorch does; for a sum, each rank gets an equal part."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    each = torch.zeros(value.shape, dtype=value.dtype) + value  # made here: on each rank its own
    if where != "P":
        return distribute_tensor(each, mesh, [placement(where)], src_data_rank=None)
    return DTensor.from_local(each / mesh.size(), mesh, [placement("P")])


def compare(seed: int, mesh: Any) -> dict[str, bool]:
    """Run one random program of three steps in the miniature and with DTensor.

    Each step is compared: where its result is, what was sent, each rank's shape, the value.
    """
    chance, ranks = random.Random(seed), mesh.size()
    torch.manual_seed(seed)
    size = chance.choice([ranks, 2 * ranks, 4 * ranks, 3 * ranks + 1])

    def drawn() -> tuple[placed.Placed, Any]:
        value, where = torch.randn(size, size).double(), chance.choice(["S0", "S1", "R", "P"])
        return placed.place(value, where, ranks), distributed(value, where, mesh)

    small, big = drawn()
    same = dict.fromkeys(("where", "sent", "shapes", "value"), True)
    for _ in range(3):
        op, rules = OPS[chance.choice(list(OPS))]
        others = [] if op is torch.relu else [drawn()]
        small.sent.clear()
        inputs = [small, *(other for other, _ in others)]
        seen, got = traffic(partial(op, big, *(other for _, other in others)))
        rules = rules(small) if callable(rules) else rules
        small, big = placed.run(op, rules, *inputs), got
        same["where"] &= small.where == name_of(big.placements[0])
        same["sent"] &= sorted(small.sent) == sorted(NAMES[call.name] for call in seen)
        same["shapes"] &= [p.shape for p in small.parts] == [p.shape for p in parts(big)]
        same["value"] &= torch.allclose(small.full(), whole(big))
    return same


def compare_all(seeds: range, ranks: int = 4) -> dict[str, int]:
    """Count in how many programs each part agrees, on so many ranks."""
    with local_mesh(ranks) as mesh:
        found = [compare(seed, mesh) for seed in seeds]
    return {part: sum(same[part] for same in found) for part in found[0]}


def compare_layers(rank: int, seeds: range) -> dict[str, int]:
    """Train random stacks on the ranks of the default group: small, `fully_shard`, and dense.

    Returns in how many stacks the weights agree after two steps with the dense stack on the whole
    batch, with those of `fully_shard`, and the numbers of gathers and reductions.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    ranks = torch.distributed.get_world_size()
    mesh, found = init_device_mesh("cpu", (ranks,)), dict.fromkeys(("dense", "FSDP2", "calls"), 0)
    for seed in seeds:
        chance = random.Random(seed)
        widths = [chance.randint(1, 9) for _ in range(chance.randint(2, 4))]
        keep, rows = chance.random() < 0.5, chance.randint(1, 3)
        torch.manual_seed(seed)
        dense = nn.Sequential(*[nn.Linear(a, b) for a, b in pairwise(widths)]).double()
        big, log = copy.deepcopy(dense), list[str]()
        small = nn.Sequential(*[ShardedLinear(layer, log, keep) for layer in dense])  # type: ignore[arg-type]
        for layer in big:
            fully_shard(layer, mesh=mesh, reshard_after_forward=not keep)
        fully_shard(big, mesh=mesh)
        batch = torch.randn(ranks * rows, widths[0]).double()
        mine = batch[rank * rows : (rank + 1) * rows]
        for model, x in ((dense, batch), (small, mine), (big, mine)):
            x = x.clone().requires_grad_()
            step = torch.optim.SGD(model.parameters(), lr=0.1)
            calls, _ = traffic(partial(_two_steps, model, x, step))
        gathers = sum("gather" in call.name for call in calls)
        each = len(widths) - 1  # a group is one message for FSDP2, and two tensors here
        again = 0 if keep else each
        weights = log.count("gather") - 2 * each  # biases are not gathered again
        found["calls"] += gathers == 2 * (each + again) == weights and (
            log.count("reduce") == 2 * sum("reduce" in call.name for call in calls)
        )
        found["dense"] += _agree(small, [p.detach() for p in dense.parameters()])
        found["FSDP2"] += _agree(small, [p.full_tensor() for p in big.parameters()])  # type: ignore[attr-defined]
    return found


def _two_steps(model: nn.Module, x: Tensor, step: torch.optim.Optimizer) -> None:
    for _ in range(2):
        step.zero_grad()
        model(x).square().mean().backward()
        step.step()


def _agree(small: nn.Module, full: list[Tensor]) -> bool:
    shards = [shard for layer in small for shard in (layer.weight, layer.bias)]  # type: ignore[attr-defined]
    same = True
    for shard, value in zip(shards, full, strict=True):
        same &= torch.allclose(shard.gather(), value)
        shard.free()
    return same
