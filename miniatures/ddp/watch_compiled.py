"""Compile a model under DDP: count its pieces, and those that ran before each send."""

from __future__ import annotations

import logging
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from miniatures.ddp.watch import Backwards, chain, one_rank


def pieces_and_sends(optimize: bool, cap: float, inside: bool = False) -> tuple[int, list[int]]:
    """Run three steps of four layers of 1 MiB; return what the third one did.

    :param optimize: `torch._dynamo.config.optimize_ddp`.
    :param cap: of the buckets, in MiB.
    :param inside: compile the module, then wrap it; else compile the wrapper.
    :returns: how many pieces the compiled backward has, and for each bucket how many of them had
        run when it was sent.
    """
    from torch._dynamo.backends.common import aot_autograd

    ran, sent, count = 0, list[int](), 0

    def forward(graph: Any, _: object) -> Any:
        return _boxed(graph)

    def backward(graph: Any, _: object) -> Any:
        def run(*values: Any) -> Any:
            nonlocal ran
            ran += 1
            return graph(*values)

        return _boxed(run)

    def hook(_: object, bucket: Any) -> Any:
        sent.append(ran)
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0])

    hook.__annotations__ = {}
    compiler = aot_autograd(fw_compiler=forward, bw_compiler=backward)
    config: Any = torch._dynamo.config
    torch._dynamo.reset()
    logging.disable(logging.WARNING)  # it says that a profiler's mark is not compiled
    try:
        with one_rank(), config.patch(optimize_ddp=optimize):
            net: Any = Backwards(512)
            if inside:
                net.compile(backend=compiler)
            model: Any = DDP(net, bucket_cap_mb=cap)
            model.register_comm_hook(None, hook)
            call = model if inside else torch.compile(model, backend=compiler)
            for _ in range(3):
                ran = 0
                sent.clear()
                call(torch.ones(2, 512)).sum().backward()
                count = ran
    finally:
        logging.disable(logging.NOTSET)
        torch._dynamo.reset()
    return count, list(sent)


def static_and_compiled(rank: int, optimize: bool) -> list[float]:
    """Run three steps of a static graph, as it is and compiled, in a rank of a group.

    Return one number of the last gradient of the plain run, then one of each compiled step.
    """
    config: Any = torch._dynamo.config
    found = list[float]()
    logging.disable(logging.WARNING)
    try:
        for compiled in (False, True):
            torch._dynamo.reset()
            with config.patch(optimize_ddp=optimize):
                model: Any = DDP(chain(4, 512), bucket_cap_mb=2, static_graph=True)
                call = torch.compile(model, backend="aot_eager") if compiled else model
                for _ in range(3):
                    model.zero_grad()
                    call(torch.full((2, 512), rank + 1.0)).sum().backward()
                    found.append(model.module[0].weight.grad[0, 0].item())
    finally:
        logging.disable(logging.NOTSET)
        torch._dynamo.reset()
    return found[2:]


def _boxed(run: Any) -> Any:
    from functorch.compile import make_boxed_func

    return make_boxed_func(run)
