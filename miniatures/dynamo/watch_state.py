"""What a `with` does to the graphs of a function, and which state around a call is guarded."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
import torch._inductor.config
import torch.autograd.forward_ad
from torch._C._dynamo.guards import GlobalStateGuard
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from miniatures.dynamo.watch import compiled, entries, holds, settings

Make = Callable[[], AbstractContextManager[Any]]
inductor_settings = torch._inductor.config.patch  # a `with` that sets options of Inductor


def kept(make: Make, speaks: bool) -> str:
    """Compile a function with operators before, in and behind a `with`; tell what is in graphs.

    :param speaks: whether there is a print between two operators in the block.
    """

    def region(x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        with make():
            x = x * 2
            if speaks:
                print(end="")
            x = x + 1
        return x.cos()

    with warnings.catch_warnings(action="ignore"):
        seen = compiled(region, [(torch.ones(3),)])
    if isinstance(seen.counts[0], str):
        return seen.counts[0]
    code = " ".join(part.code for part in seen.graphs)
    if len(seen.graphs) == 1 and "cos" not in code:
        return "before"
    return ("none", "whole", "resumes")[len(seen.graphs)]


def global_state() -> list[str]:
    """Return the names in the guard of global state, without those inside `autocast_state`."""
    return sorted(json.loads(str(GlobalStateGuard().__getstate__())))


@contextmanager
def switched(set_: Callable[[Any], Any], there: Any, back: Any) -> Iterator[None]:
    """Set something for a block."""
    set_(there)
    try:
        yield
    finally:
        set_(back)


def one_thread_more() -> Any:
    """Return what gives this thread's operators one thread more for a block."""
    now = torch.get_num_threads()
    return switched(torch.set_num_threads, now + 1, now)


def flag(owner: Any, name: str, there: Any) -> Make:
    """Return what sets an attribute for a block."""
    return partial(switched, partial(setattr, owner, name), there, getattr(owner, name))


class Passes(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function."""
        return func(*args, **(kwargs or {}))


_backends, _graph = torch.backends, torch.autograd.graph
_matmul = _backends.cuda.matmul
AROUND: dict[str, Make] = {
    "`no_grad`": torch.no_grad,
    "`inference_mode`": torch.inference_mode,
    "`autocast`": partial(torch.autocast, "cpu"),
    "autocast's cache": partial(switched, torch.set_autocast_cache_enabled, False, True),
    "the default dtype": partial(
        switched, torch.set_default_dtype, torch.float64, torch.float32),
    "the default device": partial(torch.device, "meta"),
    "the number of threads": one_thread_more,
    "deterministic algorithms": partial(switched, torch.use_deterministic_algorithms, True, False),
    "the same, as warnings": partial(
        switched, lambda on: torch.use_deterministic_algorithms(on, warn_only=on), True, False),
    "matmul precision *high*": partial(
        switched, torch.set_float32_matmul_precision, "high", "highest"),
    "`cuda.matmul.allow_tf32`": flag(_matmul, "allow_tf32", True),
    "sums of float16 in float16": flag(_matmul, "allow_fp16_reduced_precision_reduction", False),
    "sums of bfloat16 in bfloat16": flag(_matmul, "allow_bf16_reduced_precision_reduction", False),
    "a mode of `torch.overrides`": Passes,
    "`DisableTorchFunctionSubclass`": torch._C.DisableTorchFunctionSubclass,
    "the kernel of attention (`sdpa_kernel`)": partial(sdpa_kernel, SDPBackend.MATH),
    "autocast's dtype, outside of autocast": partial(
        switched, partial(torch.set_autocast_dtype, "cpu"), torch.float16, torch.bfloat16),
    "`saved_tensors_hooks`": partial(_graph.saved_tensors_hooks, lambda t: t, lambda t: t),
    "`detect_anomaly`": partial(torch.autograd.set_detect_anomaly, True),
    "`set_multithreading_enabled`": partial(torch.autograd.set_multithreading_enabled, False),
    "`dual_level`": torch.autograd.forward_ad.dual_level,
    "`cudnn.enabled`, `benchmark`, `deterministic`": partial(
        _backends.cudnn.flags, enabled=False, benchmark=True, deterministic=True),
    "`cudnn.allow_tf32`": flag(_backends.cudnn, "allow_tf32", False),
    "`mkldnn.enabled`": partial(_backends.mkldnn.flags, enabled=False),
    "a seed": partial(switched, torch.manual_seed, 1, 0),
    "`set_warn_always`": partial(switched, torch.set_warn_always, True, False),
    "options of Dynamo": partial(settings, capture_scalar_outputs=True),
    "options of Inductor": partial(inductor_settings, max_autotune=True),
}  # fmt: skip


def asks_for_entry() -> dict[str, bool]:
    """Tell for each state whether an entry of another state is refused in it."""
    x = torch.ones(3)

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    found = {}
    with warnings.catch_warnings(action="ignore"):
        # What is set back is not always what was there first, such as 2.15's matmul precision.
        for make in AROUND.values():
            with make():
                pass
        compiled(doubled, [(x,)])
        entry = entries(doubled)[0]
        for name, make in {**AROUND, "nothing": nullcontext}.items():
            with make():
                found[name] = not holds(entry, {"x": x})
    if found.pop("nothing"):
        raise AssertionError("a state was not set back")
    return found
