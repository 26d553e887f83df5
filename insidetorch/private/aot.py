"""AOTAutograd: its settings, the partitioner's tables, fake tensors with symbols, its wrappers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from insidetorch.private.compiler import _DYNAMO_PATCH as _TRACER_CONFIG
from insidetorch.private.compiler import _SELECT_DECOMPOSITIONS as _DECOMPOSITIONS
from insidetorch.private.inductor import _AOT_PATCH as _AOT_CONFIG
from insidetorch.private.name import Name

_AOT_BACKEND = Name("torch._dynamo.backends.common.aot_autograd")
_OPERATOR_TABLES = Name("torch._functorch.partitioners.get_default_op_list")
_SHAPE_ENV = Name("torch.fx.experimental.symbolic_shapes.ShapeEnv")
_FAKE_CLASS = Name("torch._subclasses.fake_tensor.FakeTensor")
_SHAPE_CONFIG = Name("torch.fx.experimental._config.patch")
_CORE_DECOMPOSITIONS = Name("torch._decomp.core_aten_decompositions")
_PICK_DECOMPOSITIONS = Name("torch._decomp.get_decompositions")
_GUARD_OR_FALSE = Name("torch.fx.experimental.symbolic_shapes.guard_or_false")
_LIST_BACKENDS = Name("torch._dynamo.list_backends")
_TWO_TENSOR = Name("torch.testing._internal.two_tensor.TwoTensor")
_CHECK = Name("torch._check")
_MEM_TRACKER = Name("torch.distributed._tools.mem_tracker.MemTracker")
_MARK_UNBACKED = Name("torch._dynamo.decorators.mark_unbacked")
_COUNTERS = Name("torch._dynamo.utils.counters")


def aot_settings(**settings: Any) -> Any:
    """Return a context with other settings of AOTAutograd, such as ``donated_buffer=False``.

    `torch._functorch.config.patch`.
    """
    return _AOT_CONFIG.get()(**settings)


def tracer_settings(**settings: Any) -> Any:
    """Return a context with other settings of Dynamo, such as ``capture_scalar_outputs=True``.

    `torch._dynamo.config.patch`.
    """
    return _TRACER_CONFIG.get()(**settings)


def shape_settings(**settings: Any) -> Any:
    """Return a context with other settings for symbolic sizes, such as ``use_duck_shape=False``.

    `torch.fx.experimental._config.patch`.
    """
    return _SHAPE_CONFIG.get()(**settings)


def aot_backend(**compilers: Callable[..., Any]) -> Callable[..., Any]:
    """Return a backend for `torch.compile` that gives each graph of AOTAutograd to a compiler.

    `torch._dynamo.backends.common.aot_autograd`.
    :param compilers: ``fw_compiler``, ``bw_compiler``, ``partition_fn`` and so on.
    """
    backend: Callable[..., Any] = _AOT_BACKEND.get()(**compilers)
    return backend


def partitioner_tables() -> Any:
    """Return which operators the partitioner calls fusible, recomputable, random or a view.

    `torch._functorch.partitioners.get_default_op_list`.
    """
    return _OPERATOR_TABLES.get()()


def shape_env() -> Any:
    """Return a new environment for symbolic sizes: their values, and the guards found so far.

    `torch.fx.experimental.symbolic_shapes.ShapeEnv`.
    """
    return _SHAPE_ENV.get()()


def fake_tensor_class() -> Any:
    """Return the class of tensors without numbers.

    `torch._subclasses.fake_tensor.FakeTensor`.
    """
    return _FAKE_CLASS.get()


def inductor_decompositions() -> dict[Any, Callable[..., Any]]:
    """Return the operators that Inductor asks AOTAutograd to take apart, and how.

    `torch._inductor.decomposition.select_decomp_table`.
    """
    return dict(_DECOMPOSITIONS.get()())


def compile_counters() -> Any:
    """Return what the compiler counts, such as hits of its caches, by part.

    `torch._dynamo.utils.counters`.
    """
    return _COUNTERS.get()


def core_decompositions() -> dict[Any, Callable[..., Any]]:
    """Return the operators outside the core set, and how each is taken apart.

    `torch._decomp.core_aten_decompositions`.
    """
    return dict(_CORE_DECOMPOSITIONS.get()())


def picked_decompositions(operators: list[Any]) -> dict[Any, Callable[..., Any]]:
    """Return how these operators are taken apart, and no others.

    `torch._decomp.get_decompositions`.
    """
    return dict(_PICK_DECOMPOSITIONS.get()(operators))


def guard_or_false() -> Callable[[Any], bool]:
    """Return the function that answers False to a question that only data could answer.

    `torch.fx.experimental.symbolic_shapes.guard_or_false`.
    """
    answer: Callable[[Any], bool] = _GUARD_OR_FALSE.get()
    return answer


def compile_backends() -> list[str]:
    """Return the names of all backends that `torch.compile` knows.

    `torch._dynamo.list_backends`.
    """
    return list(_LIST_BACKENDS.get()(exclude_tags=()))


def two_tensor() -> Any:
    """Return PyTorch's own test subclass, a tensor made of two.

    `torch.testing._internal.two_tensor.TwoTensor`.
    """
    return _TWO_TENSOR.get()


def runtime_check() -> Any:
    """Return the function that states a fact about a size, which is checked when a graph runs.

    `torch._check`, documented in spite of its name.
    """
    return _CHECK.get()


def inductor_patched(**settings: Any) -> Any:
    """Return a context in which settings of `torch._inductor.config` hold.

    Last checked with: 2.15.0.
    """
    import torch._inductor.config as inductor

    return inductor.patch(**settings)


def mark_unbacked(tensor: Any, dim: int) -> None:
    """Give a size a letter without an example, when a compiled function sees the tensor.

    `torch._dynamo.decorators.mark_unbacked`.
    """
    _MARK_UNBACKED.get()(tensor, dim)


def memory_tracker() -> Any:
    """Return a counter of the memory that each kind of tensor holds, also of fake ones.

    `torch.distributed._tools.mem_tracker.MemTracker`.
    """
    return _MEM_TRACKER.get()()
