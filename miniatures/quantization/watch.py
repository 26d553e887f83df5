"""What runs: operators with their types, the keys of values, saturation, torchao and its graphs."""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.ao import quantization
from torch.utils._python_dispatch import TorchDispatchMode

from insidetorch import private, processes

NOTES = (
    r"torch\.ao\.quantization is deprecated",
    r"Please use quant_min and quant_max",
    r"torch\.quantize_per_tensor, torch\.quantize_per_channel",
    r"must run observer before",
    r".*autograd kernel was not registered",
    r".*qnnpack incorrectly ignores reduce_range",
)
"""The warnings of this subject; the chapter shows them once, and then not in each cell."""


def quietly() -> None:
    """Let the warnings of this subject be shown where a cell asks for them only."""
    for note in NOTES:
        warnings.filterwarnings("ignore", message=note)


class _Log(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[str, list[str]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kinds = [str(a.dtype).removeprefix("torch.") for a in args if isinstance(a, torch.Tensor)]
        self.calls.append((str(func).removeprefix("aten.").rpartition(".")[0], kinds))
        return func(*args, **(kwargs or {}))


def operators(model: Any, x: torch.Tensor) -> list[tuple[str, list[str]]]:
    """Return the operators that a call runs below autograd, with the types of their tensors."""
    log = _Log()
    with torch.no_grad(), log:
        model(x)
    return log.calls


class _Alive(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, size: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.size, self.made, self.now, self.most = size, 0, 0, 0

    def _gone(self) -> None:
        self.now -= 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and out.is_floating_point() and out.numel() == self.size:
            self.made, self.now = self.made + 1, self.now + 1
            self.most = max(self.most, self.now)
            weakref.finalize(out, self._gone)
        return out


def floats_alive(model: Any, x: torch.Tensor, size: int) -> tuple[int, int]:
    """Return how many float tensors of a size a call makes, and how many lived at once."""
    alive = _Alive(size)
    with torch.no_grad(), alive:
        model(x)
    return alive.made, alive.most


def keys(model: nn.Sequential, x: torch.Tensor) -> list[tuple[str, str, str]]:
    """Return what comes out of each part of a model: its name, its first key, its type."""
    found = [("input", private.dispatch_keys(x)[0], _kind(x))]
    for part in model:
        x = part(x)
        found.append((type(part).__name__, private.dispatch_keys(x)[0], _kind(x)))
    return found


def _kind(x: torch.Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


_SATURATED = """
import json, warnings
warnings.simplefilter("ignore")
import torch
torch.backends.quantized.engine = "onednn"
x, weight = torch.full((1, 64), 255.0), torch.full((8, 64), 127.0)
codes = torch.quantize_per_tensor(weight, 1.0, 0, torch.qint8)
packed = torch.ops.quantized.linear_prepack(codes, None)
found = [torch.ops.quantized.linear_dynamic(x, packed, few)[0, 0].item() for few in (False, True)]
print(json.dumps(found))
"""


def saturated(instructions: str) -> list[float]:
    """Return 64 products of 255 and 127 and their sum, by oneDNN in a process of its own.

    First with eight bits for the input, then with seven.

    :param instructions: the newest that oneDNN may use, such as ``AVX2``.
    """
    more = {"ONEDNN_MAX_CPU_ISA": instructions}
    done = processes.run(
        [sys.executable, "-c", _SATURATED], env=processes.environment(**more), seconds=120
    )
    return [float(value) for value in json.loads(processes.last_line(done.stdout))]


@contextmanager
def silent_logs() -> Iterator[None]:
    """Let no logger say anything: the exporter to ONNX names each library that it misses."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def load_torchao() -> Any:
    """Return the package torchao without its notes on libraries for other machines, or None."""
    if importlib.util.find_spec("torchao") is None:
        return None
    for name in ("torchao", "torch.utils._pytree"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torchao
        import torchao.quantization
    return torchao


def exported(model: nn.Module, x: torch.Tensor) -> dict[str, Any]:
    """Return a model exported, with observers, and converted, by torchao's PT2E for x86."""
    # Importing and matching script a part of PyTorch, which is deprecated.
    with warnings.catch_warnings(action="ignore"):
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

        found: dict[str, Any] = {"exported": torch.export.export(model, (x,)).module()}
        settings = x86.get_default_x86_inductor_quantization_config()
        quantizer = x86.X86InductorQuantizer().set_global(settings)
        prepared = prepare_pt2e(torch.export.export(model, (x,)).module(), quantizer)
        with torch.no_grad():
            prepared(x)
        found["observed"] = names(prepared)
        found["converted"] = convert_pt2e(prepared)
    return found


def names(graph: Any) -> list[str]:
    """Return the operators of a graph, in order and in short."""
    short = []
    for node in graph.graph.nodes:
        target = str(node.target)
        if node.op == "call_function" and "getitem" not in target:
            name = target.removeprefix("aten.").removeprefix("quantized_decomposed.")
            short.append(name.partition(".")[0].replace("_per_", "\nper "))
        elif "activation_post_process" in node.name:
            short.append("observer")
    return short


def observer_range(observer: Any) -> tuple[float, float]:
    """Return the smallest and the largest number that the observer's parameters have codes for."""
    scale, zero = observer.calculate_qparams()
    low, high = observer.quant_min - zero, observer.quant_max - zero
    return float(scale * low), float(scale * high)


def with_settings(model: nn.Module, engine: str) -> nn.Module:
    """Return a model with the default settings of an engine for training."""
    model.qconfig = quantization.get_default_qat_qconfig(engine)  # type: ignore[no-untyped-call]
    return model
