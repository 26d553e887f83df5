"""Random models for DDP and for the miniature, run side by side on the same ranks."""

from __future__ import annotations

import random
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from miniatures.ddp.reducer import Reducer
from miniatures.ddp.watch import bucket_log, report


class RandomNet(nn.Module):
    """A chain that uses random parameters in a random order, some of them several times."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        chance = random.Random(seed)
        torch.manual_seed(seed)
        for number in range(chance.randint(1, 12)):
            shape = [chance.randint(1, 6) for _ in range(chance.randint(0, 3))]
            dtype = chance.choice([torch.float32] * 4 + [torch.float64])
            self.register_parameter(f"p{number}", nn.Parameter(torch.randn(shape, dtype=dtype)))
        self.order = chance.sample(range(number + 1), number + 1)
        self.order += chance.choices(range(number + 1), k=chance.randint(0, 3))

    def forward(self, x: torch.Tensor, skip: int | None = None) -> torch.Tensor:
        """Use all parameters, or all but one."""
        params = list(self.parameters())
        for number in self.order:
            if number != skip:
                x = torch.sin(x * 0.5 + (params[number].double() ** 2).sum())
        return x


def compare(rank: int, seed: int) -> tuple[dict[str, bool], list[str]]:
    """Train a random model by DDP and by the miniature; say what is equal, and what occurred."""
    chance = random.Random(-seed)
    cap, find_unused, hooked = chance.choice([8, 64, 200, 5000]), seed % 3 == 0, seed % 2 == 0
    nets = RandomNet(seed), RandomNet(seed)
    ddp = DDP(nets[0], bucket_cap_mb=cap / 2**20, find_unused_parameters=find_unused)
    small = Reducer(list(nets[1].parameters()), cap, find_unused=find_unused)
    log = bucket_log(ddp) if hooked else []
    same, traits = {"gradients": True, "ready order": True, "buckets": True}, set[str]()
    for step in range(4):
        accumulate = seed % 5 == 0 and step % 2 == 0
        others = [i for i in range(len(small.params)) if i != nets[0].order[0]]
        skip = chance.choice([None, *others, rank if rank in others else None])
        skip = skip if find_unused else None
        x = torch.tensor(0.1 * step + rank, dtype=torch.float64, requires_grad=True)
        log.clear()
        with ddp.no_sync() if accumulate else nullcontext():
            ddp(x, skip).backward()
        small.before_forward()
        out = nets[1](x, skip)
        if not accumulate:
            small.after_forward([out])
        out.backward()
        pairs = zip(nets[0].parameters(), nets[1].parameters(), strict=True)
        same["gradients"] &= all(
            a.grad is b.grad is None
            or (a.grad is not None and b.grad is not None and torch.equal(a.grad, b.grad))
            for a, b in pairs
        )
        if hooked and not accumulate:
            same["buckets"] &= [bucket.params for bucket in log] == small.launched
        traits |= {"accumulation"} if accumulate else set()
        traits |= {"an unused parameter"} if skip is not None else set()
        traits |= {"several buckets"} if len(small.buckets) > 1 else set()
        traits |= (
            {"buckets of two types"} if len({b.flat.dtype for b in small.buckets}) > 1 else set()
        )
    traits |= {"a rebuild"} if small.rebuilt else set()
    ddp(torch.zeros((), dtype=torch.float64))  # the report tells of the pass before
    told = report(ddp)
    ready = told["prev_iteration_grad_ready_order_indices"].split(", ")
    same["ready order"] = list(map(int, ready)) == small.ready_order
    if small.rebuilt:
        rebuilt = told["rebuilt_per_bucket_param_indices"].split(", ")
        ours = [" ".join(map(str, bucket.indices)) for bucket in small.buckets]
        same["buckets"] &= rebuilt == ours
    dist.barrier()
    return same, sorted(traits)


def compare_all(rank: int, count: int) -> tuple[dict[str, int], dict[str, int]]:
    """Compare on seeds below `count`; return how many are equal, and how many have each trait."""
    equal: dict[str, int] = {}
    occurred: dict[str, int] = {}
    for seed in range(count):
        same, traits = compare(rank, seed)
        for key, value in same.items():
            equal[key] = equal.get(key, 0) + value
        for trait in traits:
            occurred[trait] = occurred.get(trait, 0) + 1
    return equal, dict(sorted(occurred.items()))
