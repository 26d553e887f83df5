"""Every private PyTorch name the book uses, each behind one small accessor.

PyTorch promises nothing about these names. They are written down here once, so that a rename
upstream is found by `missing` and mended in one place. To add one: a `_Name` beside the accessor
that uses it, and a docstring that says what it is, where it lives and which releases it was seen
in. "Seen" means that somebody ran it there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any

from insidetorch.errors import BookError

if TYPE_CHECKING:
    import torch

_NAMES: list[_Name] = []


@dataclass(frozen=True)
class _Name:
    """A private name: where it lives, and the releases it was run on.

    :param path: module and attributes, such as ``torch._C._current_graph_task_id``.
    :param seen: releases on which the accessor was run.
    :param example: makes an object of the class before the last dot; for attributes that only
        instances have.
    """

    path: str
    seen: tuple[str, ...]
    example: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        _NAMES.append(self)

    def get(self) -> Any:
        """Return what the name stands for in the running torch, or raise `BookError`."""
        try:
            return _resolve(self.path)
        except AttributeError:
            raise self._absent() from None

    def of(self, owner: object) -> Any:
        """Return the attribute of `owner` that the last part of the path names."""
        try:
            return getattr(owner, self.path.rpartition(".")[2])
        except AttributeError:
            raise self._absent() from None

    def here(self) -> bool:
        """Tell whether the running torch has the name."""
        try:
            _resolve(self.path) if self.example is None else self.of(self.example())
        except (AttributeError, BookError):
            return False
        return True

    def _absent(self) -> BookError:
        import torch

        return BookError(
            f"The private PyTorch name {self.path} is absent from torch {torch.__version__} "
            f"(it was seen in {', '.join(self.seen)}): install one of those releases, or mend its "
            "accessor in insidetorch/private.py."
        )


def _resolve(path: str) -> Any:
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            root = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[cut:], root)
    raise AttributeError(path)


def missing() -> list[str]:
    """Return the private names that the running torch does not have, in the order below."""
    return [name.path for name in _NAMES if not name.here()]


def names() -> list[str]:
    """Return every private name the book uses, in the order below."""
    return [name.path for name in _NAMES]


def _node() -> object:
    import torch

    return torch.zeros(1, requires_grad=True).exp().grad_fn


def _tensor() -> object:
    import torch

    return torch.zeros(1)


# ── C++ stacks ──────────────────────────────────────────────────────────────────────────────────

_SYMBOLIZE = _Name("torch._C._profiler.symbolize_addresses", ("2.13",))


def symbolize(addresses: Sequence[int]) -> list[tuple[str, int, str]]:
    """Return (source file, line, function) of each code address of this process.

    `torch._C._profiler.symbolize_addresses` (torch/csrc/profiler/unwind) runs the system's
    ``addr2line`` over the libraries the addresses lie in. Release wheels have symbols but no line
    table: the line is 0, and the file is a base name or ``??``. Seen in 2.13.
    """
    named: list[tuple[str, int, str]] = _SYMBOLIZE.get()(list(addresses), "addr2line")
    return named


# ── Modes ───────────────────────────────────────────────────────────────────────────────────────

_DISPATCH_MODE = _Name("torch.utils._python_dispatch.TorchDispatchMode", ("2.13",))


def dispatch_mode() -> Any:
    """Return the class `TorchDispatchMode`: a subclass sees every ATen call of its thread.

    It lives in `torch.utils._python_dispatch`, a private module around a documented class. Seen
    in 2.13.
    """
    return _DISPATCH_MODE.get()


# ── Autograd ────────────────────────────────────────────────────────────────────────────────────

_GRAPH_TASK_ID = _Name("torch._C._current_graph_task_id", ("2.13",))
_CURRENT_NODE = _Name("torch._C._current_autograd_node", ("2.13",))
_EXECUTION_ORDER = _Name("torch._C._current_graph_task_execution_order", ("2.13",))
_QUEUE_CALLBACK = _Name("torch.autograd.Variable._execution_engine.queue_callback", ("2.13",))
_SEQUENCE_NR = _Name("torch.autograd.graph.Node._sequence_nr", ("2.13",), _node)
_INPUT_METADATA = _Name("torch.autograd.graph.Node._input_metadata", ("2.13",), _node)
_SAVED_RESULT = _Name("torch.autograd.graph.Node._saved_result", ("2.13",), _node)
_VERSION = _Name("torch.Tensor._version", ("2.13",), _tensor)


def graph_task_id() -> int:
    """Return the number of the backward pass that runs on this thread; -1 outside of one.

    `torch._C._current_graph_task_id`. Seen in 2.13.
    """
    task: int = _GRAPH_TASK_ID.get()()
    return task


def current_node() -> Any:
    """Return the autograd node that this thread evaluates now; None outside of a backward pass.

    `torch._C._current_autograd_node`. Seen in 2.13.
    """
    return _CURRENT_NODE.get()()


def execution_order() -> list[Any]:
    """Return the nodes of the running backward pass in the order the engine will take them.

    `torch._C._current_graph_task_execution_order`. Call it from a hook on the root, inside
    ``torch.autograd.set_multithreading_enabled(False)``; elsewhere it raises. Seen in 2.13.
    """
    order: list[Any] = _EXECUTION_ORDER.get()()
    return order


def queue_callback(callback: Callable[[], object]) -> None:
    """Have the engine call `callback` once, when the running backward pass is complete.

    `torch.autograd.Variable._execution_engine.queue_callback`; outside of a backward pass it
    raises RuntimeError. `DistributedDataParallel` finishes its reduction this way. Seen in 2.13.
    """
    _QUEUE_CALLBACK.get()(callback)


def sequence_nr(node: Any) -> int | None:
    """Return the number an autograd node got when it was made; a greater one is made later.

    `Node._sequence_nr()`, counted per thread. None for `AccumulateGrad`, whose number is the
    greatest a 64-bit counter holds, so that it runs as soon as it is ready. Seen in 2.13.
    """
    number: int = _SEQUENCE_NR.of(node)()
    return None if number == 2**64 - 1 else number


def input_metadata(node: Any) -> list[Any]:
    """Return shape, dtype and device of each gradient an autograd node takes.

    `Node._input_metadata`: one entry for each output of the forward operation. Seen in 2.13.
    """
    return list(_INPUT_METADATA.of(node))


def saved_values(node: Any) -> dict[str, Any]:
    """Return what an autograd node kept of the forward pass, by name without the prefix.

    The attributes ``_saved_…`` of a node, such as `ExpBackward0._saved_result`. A node whose
    buffers were freed has none to give: PyTorch raises RuntimeError. Seen in 2.13.
    """
    prefix = "_saved_"
    found = [name for name in dir(node) if name.startswith(prefix)]
    return {name.removeprefix(prefix): getattr(node, name) for name in found}


def version(tensor: torch.Tensor) -> int:
    """Return how often PyTorch wrote in place through tensors that share this one's counter.

    `Tensor._version`. Seen in 2.13.
    """
    count: int = _VERSION.of(tensor)
    return count


# ── Code for a GPU without one ──────────────────────────────────────────────────────────────────

_FAKE_TENSOR_MODE = _Name("torch._subclasses.fake_tensor.FakeTensorMode", ("2.13",))
_INIT_GPU_CONTEXT = _Name(
    "torch._subclasses.fake_tensor.init_gpu_context", ("2.11", "2.13", "2.15")
)
_SELECT_DECOMPOSITIONS = _Name("torch._inductor.decomposition.select_decomp_table", ("2.13",))
_POST_GRAD_PASSES = _Name("torch._inductor.fx_passes.post_grad.post_grad_passes", ("2.13",))
_GRAPH_LOWERING = _Name("torch._inductor.graph.GraphLowering", ("2.13",))
_DEBUG_CONTEXT = _Name("torch._inductor.debug.DebugContext", ("2.13",))
_VIRTUALIZED = _Name("torch._inductor.virtualized.V", ("2.13",))
_SCHEDULER_HAS_TRITON = _Name("torch._inductor.scheduler.has_triton", ("2.13",))
_TRITON_HASH = _Name("torch.utils._triton.triton_hash_with_backend", ("2.13",))

_MODE_OPTIONS = _Name("torch._inductor.list_mode_options", ("2.11", "2.13", "2.15"))


def compile_mode_options(mode: str) -> dict[str, Any]:
    """Return the settings that a mode of `torch.compile` stands for.

    `torch._inductor.list_mode_options`. Seen in 2.11, 2.13 and 2.15.
    """
    found: dict[str, Any] = _MODE_OPTIONS.get()(mode)
    return found


def fake_tensor_mode(**options: Any) -> Any:
    """Return a context in which tensors have shapes, types and devices, and no memory.

    `torch._subclasses.fake_tensor.FakeTensorMode`. Seen in 2.13.
    """
    return _FAKE_TENSOR_MODE.get()(**options)


def never_start_gpu() -> None:
    """Have fake tensors on ``cuda`` start no GPU, also where `torch.cuda` claims to be available.

    Patches `torch._subclasses.fake_tensor.init_gpu_context`, which 2.11 calls whenever
    `torch.cuda.is_available` says so; for a process of its own. Seen in 2.11, 2.13 and 2.15.
    """
    _replace(_INIT_GPU_CONTEXT, lambda device: None)


def inductor_code(function: Callable[..., Any], mode: Any, inputs: Sequence[Any]) -> str:
    """Return the module that Inductor writes for `function`, without compiling or loading it.

    The steps of `torch._inductor.compile_fx`, by hand: trace with decompositions, the passes after
    autograd, `GraphLowering`. Patches what asks for a Triton installation, so it must run in a
    process of its own. Seen in 2.13.

    :param mode: the `fake_tensor_mode` that made the inputs.
    :param inputs: fake tensors.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    _replace(_SCHEDULER_HAS_TRITON, lambda *_: True)
    _replace(_TRITON_HASH, lambda: "no Triton installed")
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


def _replace(name: _Name, value: object) -> None:
    name.get()
    owner, _, attribute = name.path.rpartition(".")
    setattr(import_module(owner), attribute, value)


# ── Modules (chapter nn-module) ─────────────────────────────────────────────────────────────────


def _state() -> object:
    import torch

    return torch.nn.Identity().state_dict()


def _profile() -> object:
    import torch

    return torch.autograd.profiler.profile()


_KWARGS_HOOKS = _Name("torch.nn.modules.module._global_forward_hooks_with_kwargs", ("2.13",))
_STATE_METADATA = _Name("collections.OrderedDict._metadata", ("2.13",), _state)
_SKIP_HOOK_GUARDS = _Name("torch._dynamo.config.skip_nnmodule_hook_guards", ("2.13",))
_DYNAMO_PATCH = _Name("torch._dynamo.config.patch", ("2.13",))
_KINETO_RESULTS = _Name("torch.autograd.profiler.profile.kineto_results", ("2.13",), _profile)


def global_kwargs_hooks() -> dict[int, bool]:
    """Return the table of global forward hooks that take keyword arguments, by handle number.

    `torch.nn.modules.module._global_forward_hooks_with_kwargs`: the table itself. Seen in 2.13.
    """
    hooks: dict[int, bool] = _KWARGS_HOOKS.get()
    return hooks


def state_metadata(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a state dict says about its modules beside the tensors: version, by prefix.

    The attribute ``_metadata`` that `Module.state_dict` puts on its result. Seen in 2.13.
    """
    metadata: dict[str, dict[str, Any]] = _STATE_METADATA.of(state)
    return metadata


def guard_module_hooks() -> Any:
    """Return a context in which Dynamo checks, at each call, that no module's hooks changed.

    `torch._dynamo.config.skip_nnmodule_hook_guards`, switched off. Seen in 2.13.
    """
    _SKIP_HOOK_GUARDS.get()
    return _DYNAMO_PATCH.get()(skip_nnmodule_hook_guards=False)


def memory_events(function: Callable[[], object]) -> list[int]:
    """Return the bytes of each allocation (> 0) and release (< 0) on the CPU, in order.

    `torch.autograd.profiler.profile.kineto_results`, whose raw events named ``[memory]`` are what
    the CPU allocator reported. Seen in 2.13.
    """
    import torch

    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        function()
    events = _KINETO_RESULTS.of(profile).events()
    return [event.nbytes() for event in events if event.name() == "[memory]"]


# ── Recording the graph ─────────────────────────────────────────────────────────────────────────

_SCHEMA = _Name("torch.ops.aten.mul.Tensor._schema", ("2.13",))


def operator_arguments(operator: Any) -> dict[str, Any]:
    """Return the arguments of an operator overload by name, in order, with their defaults.

    `OpOverload._schema`; an argument without a default has None. Seen in 2.13.
    """
    return {one.name: one.default_value for one in _SCHEMA.of(operator).arguments}


def operator_results(operator: Any) -> list[str]:
    """Return the names of an operator overload's results; an unnamed one has an empty name.

    `OpOverload._schema`. Seen in 2.13.
    """
    return [one.name for one in _SCHEMA.of(operator).returns]


# ── Optimizers ──────────────────────────────────────────────────────────────────────────────────


def operator_writes(operator: Any) -> dict[str, bool]:
    """Return the arguments of an operator overload by name, in order: True for those it writes.

    `OpOverload._schema`, the alias annotations such as ``Tensor(a!)``. Seen in 2.13.
    """
    annotated = [(one.name, one.alias_info) for one in _SCHEMA.of(operator).arguments]
    return {name: alias is not None and bool(alias.is_write) for name, alias in annotated}


_FOREACH_DEVICES = _Name("torch.optim.optimizer._get_foreach_kernels_supported_devices", ("2.13",))


@contextmanager
def foreach_devices(*types: str) -> Iterator[None]:
    """Let optimizers believe that these device types, and no others, have foreach kernels.

    `torch.optim.optimizer._get_foreach_kernels_supported_devices`, replaced. Seen in 2.13.
    """
    before = _FOREACH_DEVICES.get()
    _replace(_FOREACH_DEVICES, lambda: list(types))
    try:
        yield
    finally:
        _replace(_FOREACH_DEVICES, before)


# ── Mixed precision (chapter amp) ───────────────────────────────────────────────────────────────

_KEYS_OF = _Name("torch._C._dispatch_keys", ("2.13",))
_EXCLUDED = _Name("torch._C._dispatch_tls_local_exclude_set", ("2.13",))
_REGISTRATIONS = _Name("torch._C._dispatch_get_registrations_for_dispatch_key", ("2.13",))
_IS_VIEW = _Name("torch.Tensor._is_view", ("2.13",), _tensor)


def dispatch_keys(tensor: torch.Tensor) -> list[str]:
    """Return the names of the dispatch keys that a tensor carries, the first served last.

    `torch._C._dispatch_keys`; a key set has only its text for the members. Seen in 2.13.
    """
    return _members(_KEYS_OF.get()(tensor))


def excluded_keys() -> list[str]:
    """Return the names of the dispatch keys that this thread skips at present.

    `torch._C._dispatch_tls_local_exclude_set`. Seen in 2.13.
    """
    return _members(_EXCLUDED.get()())


def _members(keys: object) -> list[str]:
    return re.findall(r"\w+", str(keys).partition("(")[2])


def registered_for(key: str) -> list[str]:
    """Return the operators that have a kernel for a dispatch key: ``aten::mm``, with overloads.

    `torch._C._dispatch_get_registrations_for_dispatch_key`. Seen in 2.13.
    """
    return sorted(_REGISTRATIONS.get()(key))


def is_view(tensor: torch.Tensor) -> bool:
    """Tell whether autograd tracks the tensor as a view of another.

    `torch.Tensor._is_view`. Seen in 2.13.
    """
    return bool(_IS_VIEW.of(tensor)())


# ── The engine ────────────────────────────────────────────────────────────


def _sparse() -> object:
    import torch

    return torch.eye(2).to_sparse()


_VALUES = _Name("torch.Tensor._values", ("2.13",), _sparse)


def sparse_values(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values of a sparse tensor as they lie in memory, coalesced or not.

    `Tensor._values`; the public `values` wants a coalesced tensor. Seen in 2.13.
    """
    values: torch.Tensor = _VALUES.of(tensor)()
    return values


# ── What a tensor is (chapter tensor) ───────────────────────────────────────────────────────────


def _storage() -> object:
    return _tensor().untyped_storage()  # type: ignore[attr-defined]


def _key_set() -> object:
    return _KEYS_OF.get()(_tensor())


_KEY_BITS = _Name("torch._C.DispatchKeySet.raw_repr", ("2.11", "2.13", "2.15"), _key_set)
_CDATA = _Name("torch.Tensor._cdata", ("2.11", "2.13", "2.15"), _tensor)
_STORAGE_CDATA = _Name("torch.UntypedStorage._cdata", ("2.11", "2.13", "2.15"), _storage)
_USE_COUNT = _Name("torch.Tensor._use_count", ("2.11", "2.13", "2.15"), _tensor)
_STORAGE_USE_COUNT = _Name("torch._C._storage_Use_Count", ("2.11", "2.13", "2.15"))
_WEAK_REF = _Name("torch.UntypedStorage._weak_ref", ("2.11", "2.13", "2.15"), _storage)
_FREE_WEAK_REF = _Name("torch.UntypedStorage._free_weak_ref", ("2.11", "2.13", "2.15"), _storage)
_DATA_ADDRESS = _Name("torch._C._data_address", ("2.11", "2.13", "2.15"))
_LAZY_CLONE = _Name("torch._lazy_clone", ("2.11", "2.13", "2.15"))
_IS_COW = _Name("torch._C._is_cow_tensor", ("2.11", "2.13", "2.15"))


def dispatch_key_bits(tensor: torch.Tensor) -> int:
    """Return the 64 bits of a tensor's dispatch key set as a number.

    `DispatchKeySet.raw_repr` of what `torch._C._dispatch_keys` returns. Seen in 2.11, 2.13, 2.15.
    """
    return int(_KEY_BITS.of(_KEYS_OF.get()(tensor))())


def tensor_address(tensor: torch.Tensor) -> int:
    """Return the address of the TensorImpl of a tensor.

    `Tensor._cdata`. Seen in 2.11, 2.13, 2.15.
    """
    return int(_CDATA.of(tensor))


def storage_address(storage: torch.UntypedStorage) -> int:
    """Return the address of the StorageImpl of a storage.

    `UntypedStorage._cdata`. Seen in 2.11, 2.13, 2.15.
    """
    return int(_STORAGE_CDATA.of(storage))


def use_count(tensor: torch.Tensor) -> int:
    """Return how many owners the TensorImpl of a tensor has; its Python object is one.

    `Tensor._use_count`. Seen in 2.11, 2.13, 2.15.
    """
    return int(_USE_COUNT.of(tensor)())


def storage_use_count(storage: torch.UntypedStorage) -> int:
    """Return how many owners the StorageImpl of a storage has; its Python object is one.

    `torch._C._storage_Use_Count`. Seen in 2.11, 2.13, 2.15.
    """
    return int(_STORAGE_USE_COUNT.get()(storage_address(storage)))


@contextmanager
def weak_storage(storage: torch.UntypedStorage) -> Iterator[None]:
    """Hold a weak reference to a StorageImpl inside the ``with`` block.

    `UntypedStorage._weak_ref` and `_free_weak_ref`. Seen in 2.11, 2.13, 2.15.
    """
    reference = _WEAK_REF.of(storage)()
    try:
        yield
    finally:
        _FREE_WEAK_REF.of(storage)(reference)


def data_address(tensor: torch.Tensor) -> int:
    """Return where the memory of a tensor's storage begins, without asking for write access.

    `torch._C._data_address`; `data_ptr` would end a lazy clone. Seen in 2.11, 2.13, 2.15.
    """
    return int(_DATA_ADDRESS.get()(tensor))


def lazy_clone(tensor: torch.Tensor) -> torch.Tensor:
    """Return a clone that shares the memory until one of the two is written.

    `torch._lazy_clone`. Seen in 2.11, 2.13, 2.15.
    """
    clone: torch.Tensor = _LAZY_CLONE.get()(tensor)
    return clone


def is_copy_on_write(tensor: torch.Tensor) -> bool:
    """Tell whether the next write to a tensor makes a copy of its memory, or takes it over.

    `torch._C._is_cow_tensor`. Seen in 2.11, 2.13, 2.15.
    """
    return bool(_IS_COW.get()(tensor))


# ── How to see inside ───────────────────────────────────────────────────────────────────────────

_DEBUG_MODE = _Name("torch.utils._debug_mode.DebugMode", ("2.13", "2.15"))
_DISPATCH_DUMP = _Name("torch._C._dispatch_dump", ("2.13", "2.15"))
_DISPATCH_TABLE = _Name("torch._C._dispatch_dump_table", ("2.13", "2.15"))
_OPERATOR_NAMES = _Name("torch._C._dispatch_get_all_op_names", ("2.11", "2.13", "2.15"))
_PROFILER_CONFIG = _Name("torch._C._profiler._ExperimentalConfig", ("2.13", "2.15"))
_LOG_ARTIFACTS = _Name("torch._logging._internal.log_registry", ("2.13", "2.15"))


def debug_mode(**options: Any) -> Any:
    """Return a context that records operators and, if asked, torch functions, as an indented list.

    `torch.utils._debug_mode.DebugMode`; its `debug_string()` is the list. Seen in 2.13 and 2.15.
    """
    return _DEBUG_MODE.get()(**options)


def dispatch_dump(operator: str) -> str:
    """Return what was registered for an operator such as ``aten::mul.Tensor``, and where.

    `torch._C._dispatch_dump`. Seen in 2.13 and 2.15.
    """
    return str(_DISPATCH_DUMP.get()(operator))


def dispatch_table(operator: str) -> dict[str, str]:
    """Return the kernel that each dispatch key gets for an operator, as text, by key.

    `torch._C._dispatch_dump_table`. Seen in 2.13 and 2.15.
    """
    lines = str(_DISPATCH_TABLE.get()(operator)).splitlines()
    return {key: entry for key, _, entry in (line.partition(": ") for line in lines)}


def operator_names() -> list[str]:
    """Return the names of all registered operators, with overloads: ``aten::add.Tensor``.

    `torch._C._dispatch_get_all_op_names`, sorted. Seen in 2.11, 2.13 and 2.15.
    """
    return sorted(_OPERATOR_NAMES.get()())


def all_threads() -> Any:
    """Return the profiler setting that records the operators of every thread.

    `torch._C._profiler._ExperimentalConfig`, with ``profile_all_threads``. Seen in 2.13 and 2.15.
    """
    return _PROFILER_CONFIG.get()(profile_all_threads=True)


def log_artifacts() -> list[str]:
    """Return the names of the artifacts that ``TORCH_LOGS`` knows, sorted.

    `torch._logging._internal.log_registry`. Seen in 2.13 and 2.15.
    """
    return sorted(_LOG_ARTIFACTS.get().artifact_names)


# ── import torch (chapter import-torch) ─────────────────────────────────────────────────────────

_EXTENSION = _Name("torch._C", ("2.11", "2.13", "2.15"))
_VARIABLE_FUNCTIONS = _Name("torch._C._VariableFunctions", ("2.11", "2.13", "2.15"))
_LAZY_MODULES = _Name("torch._lazy_modules", ("2.11", "2.13", "2.15"))
_IN_BAD_FORK = _Name("torch.cuda._is_in_bad_fork", ("2.11", "2.13", "2.15"))


def extension() -> Any:
    """Return `torch._C`, the extension module behind torch. Seen in 2.11, 2.13 and 2.15."""
    return _EXTENSION.get()


def variable_functions(module: Any) -> Any:
    """Return the object of an extension module that holds the functions of the torch namespace.

    `torch._C._VariableFunctions`. Seen in 2.11, 2.13 and 2.15.

    :param module: what `extension` returned.
    """
    return _VARIABLE_FUNCTIONS.of(module)


def lazy_modules() -> set[str]:
    """Return the submodules that `torch.__getattr__` imports when they are asked for.

    `torch._lazy_modules`. Seen in 2.11, 2.13 and 2.15.
    """
    return set(_LAZY_MODULES.get())


def answer_fork_check(answer: Callable[[], bool]) -> None:
    """Have `torch.cuda` ask `answer` whether its process is a child that must not use CUDA.

    `torch.cuda._is_in_bad_fork`, replaced: a build without CUDA always says no. Seen in 2.11, 2.13
    and 2.15.
    """
    _replace(_IN_BAD_FORK, answer)


# ── The dispatcher ──────────────────────────────────────────────────────────────────────────────

_FULL_SET = _Name("torch._C._dispatch_keyset_full", ("2.13", "2.15"))
_BACKENDS = _Name("torch._C._dispatch_num_backends", ("2.13", "2.15"))
_BEHIND_AUTOGRAD = _Name("torch._C._dispatch_get_backend_keyset_from_autograd", ("2.13", "2.15"))
_INCLUDED = _Name("torch._C._dispatch_tls_local_include_set", ("2.13", "2.15"))
_FORCED_SETS = _Name("torch._C._ForceDispatchKeyGuard", ("2.13", "2.15"))
_CHECK_TABLE = _Name("torch._C._dispatch_check_invariants", ("2.13", "2.15"))
_KERNEL_LIBRARY = _Name("torch._C._dispatch_library", ("2.13", "2.15"))


def runtime_keys() -> tuple[list[str], int]:
    """Return the keys that have a place in every operator's table, the first served last.

    The second value says how many of the first are plain backends.
    `torch._C._dispatch_keyset_full` and `_dispatch_num_backends`. Seen in 2.13 and 2.15.
    """
    return _members(_FULL_SET.get()()), int(_BACKENDS.get()())


def keys_behind(autograd_key: str) -> list[str]:
    """Return the backend keys that PyTorch ties to an autograd key such as ``AutogradCPU``.

    `torch._C._dispatch_get_backend_keyset_from_autograd`. Seen in 2.13 and 2.15.
    """
    import torch

    return _members(_BEHIND_AUTOGRAD.get()(getattr(torch.DispatchKey, autograd_key)))


def key_bits(keys: Any) -> int:
    """Return a key set as a 64-bit integer; for a tensor, the set that it carries.

    `torch._C._dispatch_keys`, `DispatchKeySet.raw_repr`. Seen in 2.13 and 2.15.
    """
    bits: int = (keys if hasattr(keys, "raw_repr") else _KEYS_OF.get()(keys)).raw_repr()
    return bits


def key_set(bits: int) -> Any:
    """Return the `torch.DispatchKeySet` with these bits, such as a kernel passes on."""
    import torch

    return torch.DispatchKeySet.from_raw_repr(bits)


def thread_sets() -> tuple[int, int]:
    """Return the key sets that this thread includes and excludes, as 64-bit integers.

    `torch._C._dispatch_tls_local_include_set` and `…_exclude_set`. Seen in 2.13 and 2.15.
    """
    return _INCLUDED.get()().raw_repr(), _EXCLUDED.get()().raw_repr()


def forced_sets(included: int, excluded: int) -> Any:
    """Return a context in which this thread includes and excludes these key sets.

    `torch._C._ForceDispatchKeyGuard`. Seen in 2.13 and 2.15.
    """
    return _FORCED_SETS.get()(key_set(included), key_set(excluded))


def registrations(operator: str) -> list[tuple[str, str, str]]:
    """Return (key, place, how it can be called) of each kernel of an operator, newest first.

    `torch._C._dispatch_dump`, without the operator's own lines. The place is a file and a line;
    how is ``boxed``, ``boxed unboxed`` or ``fallthrough boxed``. Seen in 2.13 and 2.15.
    """
    line = r"^(\w+)(?:\[alias\])?(?: \(inactive\))?: (.*?) :: .*\[ ([\w ]+?) *\]$"
    rows = re.findall(line, dispatch_dump(operator), re.MULTILINE)
    return [(key, _file_of(place), how) for key, place, how in rows]


def computed_table(operator: str) -> dict[str, tuple[str, str]]:
    """Return the place and the rule of each kernel in an operator's table, by runtime key.

    `torch._C._dispatch_dump_table`; a place that falls through starts with ``fallthrough``. Keys
    without a kernel are left out. Seen in 2.13 and 2.15.
    """
    found = {}
    for key, entry in dispatch_table(operator).items():
        place, _, rule = entry.rpartition(" [")
        found[key] = _file_of(place), rule.rstrip("]")
    return found


def _file_of(place: str) -> str:
    falls, _, place = place.rpartition("registered at ")
    return falls + place.rpartition("/")[2]


def table_is_current(operator: str) -> bool:
    """Tell whether the table that calls use is the one that `computed_table` recomputes.

    `torch._C._dispatch_check_invariants`, which raises where they differ. Seen in 2.13 and 2.15.
    """
    try:
        _CHECK_TABLE.get()(operator)
    except RuntimeError:
        return False
    return True


def kernel_library(namespace: str, place: str) -> Any:
    """Return a library whose registrations carry `place` as the place where they were made.

    `torch._C._dispatch_library`: ``define(schema, "", ())`` and ``impl(name, key, function,
    with_keyset)``. What it registered goes when it goes. Seen in 2.13 and 2.15.
    """
    return _KERNEL_LIBRARY.get()("FRAGMENT", namespace, "", place, 0)


# ── Data sheets of GPUs (chapter gpu-performance) ───────────────────────────────────────────────

_DEVICE_SHEETS = _Name(
    "torch._inductor.analysis.device_info._device_mapping", ("2.11", "2.13", "2.15")
)


def device_sheets() -> dict[str, Any]:
    """Return the data sheets that Inductor judges kernels by: name of a GPU → `DeviceInfo`.

    `torch._inductor.analysis.device_info._device_mapping`. Seen in 2.11, 2.13 and 2.15.
    """
    return dict(_DEVICE_SHEETS.get())
