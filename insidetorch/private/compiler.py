"""The compiler: modes, code for a GPU that is not there, data sheets, logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from insidetorch.private.name import Name, replace

_INIT_GPU_CONTEXT = Name("torch._subclasses.fake_tensor.init_gpu_context")
_SELECT_DECOMPOSITIONS = Name("torch._inductor.decomposition.select_decomp_table")
_POST_GRAD_PASSES = Name("torch._inductor.fx_passes.post_grad.post_grad_passes")
_GRAPH_LOWERING = Name("torch._inductor.graph.GraphLowering")
_DEBUG_CONTEXT = Name("torch._inductor.debug.DebugContext")
_VIRTUALIZED = Name("torch._inductor.virtualized.V")
_SCHEDULER_HAS_TRITON = Name("torch._inductor.scheduler.has_triton")
_TRITON_HASH = Name("torch.utils._triton.triton_hash_with_backend")
_MODE_OPTIONS = Name("torch._inductor.list_mode_options")
_SKIP_HOOK_GUARDS = Name("torch._dynamo.config.skip_nnmodule_hook_guards")
_DYNAMO_PATCH = Name("torch._dynamo.config.patch")
_DYNAMO_CONFIG = Name("torch._dynamo.config")
_GRAPH_BREAK = Name("torch._dynamo.graph_break")
_PRINTING = Name("torch._higher_order_ops.print.print")
_LOG_ARTIFACTS = Name("torch._logging._internal.log_registry")
_DEVICE_SHEETS = Name("torch._inductor.analysis.device_info._device_mapping")


def compile_mode_options(mode: str) -> dict[str, Any]:
    """Return the settings that a mode of `torch.compile` stands for.

    `torch._inductor.list_mode_options`.
    """
    found: dict[str, Any] = _MODE_OPTIONS.get()(mode)
    return found


def never_start_gpu() -> None:
    """Have fake tensors on ``cuda`` start no GPU, also where `torch.cuda` claims to be available.

    Patches `torch._subclasses.fake_tensor.init_gpu_context`, which 2.11 calls whenever
    `torch.cuda.is_available` says so; for a process of its own.
    """
    replace(_INIT_GPU_CONTEXT, lambda device: None)


def inductor_code(function: Callable[..., Any], mode: Any, inputs: Sequence[Any]) -> str:
    """Return the module that Inductor writes for `function`, without compiling or loading it.

    The steps of `torch._inductor.compile_fx`, by hand: trace with decompositions, the passes after
    autograd, `GraphLowering`. Patches what asks for a Triton installation, so it must run in a
    process of its own.
    :param mode: the `fake_tensor_mode` that made the inputs.
    :param inputs: fake tensors.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    replace(_SCHEDULER_HAS_TRITON, lambda *_: True)
    replace(_TRITON_HASH, lambda: "no Triton installed")
    handlers = _VIRTUALIZED.get()
    with mode:
        traced = make_fx(function, decomposition_table=_SELECT_DECOMPOSITIONS.get()())(*inputs)
    with handlers.set_fake_mode(mode), handlers.set_debug_handler(_DEBUG_CONTEXT.get()()):
        _POST_GRAD_PASSES.get()(traced, is_inference=True)
        graph = _GRAPH_LOWERING.get()(
            traced, example_inputs=inputs, shape_env=mode.shape_env, is_inference=True
        )
        with handlers.set_graph_handler(graph):
            graph.run(*inputs)
            code = graph.codegen()[0]
    return str(getattr(code, "value", code))


def device_sheets() -> dict[str, Any]:
    """Return the data sheets that Inductor judges kernels by: name of a GPU → `DeviceInfo`.

    `torch._inductor.analysis.device_info._device_mapping`.
    """
    return dict(_DEVICE_SHEETS.get())


def log_artifacts() -> list[str]:
    """Return the names of the artifacts that ``TORCH_LOGS`` knows, sorted.

    `torch._logging._internal.log_registry`.
    """
    return sorted(_LOG_ARTIFACTS.get().artifact_names)


def guard_module_hooks() -> Any:
    """Return a context in which Dynamo checks, at each call, that no module's hooks changed.

    `torch._dynamo.config.skip_nnmodule_hook_guards`, switched off.
    """
    _SKIP_HOOK_GUARDS.get()
    return _DYNAMO_PATCH.get()(skip_nnmodule_hook_guards=False)


def dynamo_settings() -> Any:
    """Return the module of Dynamo's settings: `torch._dynamo.config`."""
    return _DYNAMO_CONFIG.get()


def graph_break() -> Callable[[], None]:
    """Return the function that ends a graph where compiled code calls it.

    `torch._dynamo.graph_break`.
    """
    found: Callable[[], None] = _GRAPH_BREAK.get()
    return found


def printing_operator() -> Callable[..., None]:
    """Return what prints in compiled code and cuts no graph: `torch._higher_order_ops.print`."""
    found: Callable[..., None] = _PRINTING.get()
    return found
