"""Mixed precision in miniature: autocast by a table, and a gradient scaler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from insidetorch.private.graph import is_view


class Autocast(TorchFunctionMode):
    """Casts what PyTorch's autocast casts, for the operators in `policies`.

    It stands where autocast's kernels stand: above autograd, so that casts are
    recorded. While an operator runs, the mode is off. The last argument is cast
    first, as in a library that GCC compiled.

    :param policies: operator → its policy, from `amp_observe.policies`.
    :param options: device, dtype, enabled, cache, other than their defaults.
    """

    active: ClassVar[list[Autocast]] = []
    casts: ClassVar[dict[int, tuple[Tensor, Tensor]]] = {}
    device, dtype, enabled, cache = "cpu", torch.bfloat16, True, True

    def __init__(self, policies: Mapping[str, str], **options: Any) -> None:
        super().__init__()
        self.policies = {op.split(".")[0]: how for op, how in policies.items()}
        vars(self).update(options)

    def __enter__(self) -> Autocast:
        Autocast.active.append(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        Autocast.active.pop()
        if not Autocast.active:
            Autocast.casts.clear()

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        how = self.policies.get(operator_name(func))
        innermost = Autocast.active[-1] is self and self.enabled
        if how is None or not innermost or "out" in kwargs:
            return func(*args, **kwargs)
        if how == "fp32_set_opt_dtype":
            if self.eligible(args[0]) and kwargs.get("dtype") is None:
                kwargs["dtype"] = torch.float32
            return func(*args, **kwargs)
        to = {"lower_precision_fp": self.dtype, "fp32": torch.float32}.get(how)
        to = to or self.widest([*args, *kwargs.values()])
        given = {**dict(enumerate(args)), **kwargs}
        cast = {key: self.cast(given[key], to) for key in reversed(given)}
        named = {key: cast.pop(key) for key in kwargs}
        return func(*reversed(cast.values()), **named)

    def eligible(self, value: Any) -> bool:
        return (
            isinstance(value, Tensor)
            and value.device.type == self.device
            and value.is_floating_point()
            and value.dtype != torch.float64
        )

    def widest(self, values: Any) -> torch.dtype:
        """Return the type for the policy promote."""
        lists = (v if isinstance(v, (list, tuple)) else [v] for v in values)
        types = {v.dtype for each in lists for v in each if self.eligible(v)}
        return torch.float32 if torch.float32 in types else self.dtype

    def cast(self, value: Any, to: torch.dtype) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)([self.cast(item, to) for item in value])
        if not self.eligible(value) or value.dtype == to:
            return value
        if not self.keeps(value, to):
            return value.to(to)
        if id(value) not in Autocast.casts:
            with torch.enable_grad():
                Autocast.casts[id(value)] = value, value.to(to)
        return Autocast.casts[id(value)][1]

    def keeps(self, value: Tensor, to: torch.dtype) -> bool:
        """Tell whether the cast is worth keeping: one of a float32 weight."""
        leaf = value.requires_grad and value.is_leaf
        lowered = value.dtype == torch.float32 and to == self.dtype
        usable = not is_view(value) and not value.is_inference()
        return self.cache and leaf and lowered and usable


def operator_name(func: Any) -> str:
    """Return ``mm`` for `torch.mm` and ``matmul`` for `Tensor.__matmul__`."""
    name = str(getattr(func, "__name__", ""))
    return name[2:-2] if name.startswith("__") else name


class Scaler:
    """Scales a loss, its gradients back, and seeks the greatest safe scale."""

    factor, growth, backoff, interval = 2.0**16, 2.0, 0.5, 2000

    def __init__(self, **options: Any) -> None:
        vars(self).update(options)
        self.clean = 0
        self.found: dict[torch.optim.Optimizer, bool] = {}

    def scale(self, loss: Tensor) -> Tensor:
        return loss * torch.tensor(self.factor)

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        groups = optimizer.param_groups
        params = [param for group in groups for param in group["params"]]
        grads = [p.grad for p in params if p.grad is not None]
        self.found[optimizer] = not all(grad.isfinite().all() for grad in grads)
        for grad in grads:
            grad.mul_(float32(1 / self.factor))

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        if optimizer not in self.found:
            self.unscale_(optimizer)
        if not self.found[optimizer]:
            optimizer.step()

    def update(self) -> None:
        if any(self.found.values()):
            self.factor, self.clean = float32(self.factor * self.backoff), 0
        else:
            self.clean += 1
            if self.clean == self.interval:
                grown, self.clean = float32(self.factor * self.growth), 0
                self.factor = grown if math.isfinite(grown) else self.factor
        self.found.clear()


def float32(number: float) -> float:
    return torch.tensor(number, dtype=torch.float32).item()
