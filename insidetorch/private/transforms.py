"""Where Python steps in: modes in force, tensors made of tensors, the levels of `torch.func`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from insidetorch.private.name import Name, a_tensor

if TYPE_CHECKING:
    import torch

_INTERPRETERS = Name("torch._C._functorch.get_interpreter_stack")
_LEVEL = Name("torch._C._functorch.maybe_get_level")
_BATCH_DIM = Name("torch._C._functorch.maybe_get_bdim")
_UNWRAPPED = Name("torch._C._functorch.get_unwrapped")
_FUNCTION_MODES = Name("torch.overrides._get_current_function_mode_stack")
_DISPATCH_MODES = Name("torch.utils._python_dispatch._get_current_dispatch_mode_stack")
_MAKE_WRAPPER = Name("torch.Tensor._make_wrapper_subclass", a_tensor)
_MAKE_SUBCLASS = Name("torch.Tensor._make_subclass", a_tensor)
_CORRECT_ALIASING = Name("torch.utils._python_dispatch.return_and_correct_aliasing")
_TREE_MAP = Name("torch.utils._pytree.tree_map")
_NO_SUBCLASSES = Name("torch._C.DisableTorchFunctionSubclass")
_NO_FUNCTIONS = Name("torch._C.DisableTorchFunction")
_NO_DISPATCH = Name("torch._C._DisableTorchDispatch")


def levels_in_force() -> list[tuple[int, str]]:
    """Return number and kind of each running transform, the outermost first.

    `torch._C._functorch.get_interpreter_stack`: ``[(1, "Vmap"), (2, "Grad")]``.
    """
    stack = _INTERPRETERS.get()() or []
    return [(each.level(), each.key().name) for each in stack]


def wrapper_of(tensor: torch.Tensor) -> tuple[int, int | None] | None:
    """Return the level and the hidden dimension of a tensor that a transform wrapped.

    None for any other tensor; no dimension for a tensor of `grad` or `jvp`.
    `torch._C._functorch.maybe_get_level` and `maybe_get_bdim`.
    """
    level = _LEVEL.get()(tensor)
    if level == -1:
        return None
    dim = _BATCH_DIM.get()(tensor)
    return level, None if dim == -1 else dim


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Return what is one wrapper deeper: `torch._C._functorch.get_unwrapped`."""
    inner: torch.Tensor = _UNWRAPPED.get()(tensor)
    return inner


def modes_in_force() -> tuple[list[Any], list[Any]]:
    """Return this thread's function modes and dispatch modes, the outermost first.

    `torch.overrides._get_current_function_mode_stack` and
    `torch.utils._python_dispatch._get_current_dispatch_mode_stack`.
    """
    return list(_FUNCTION_MODES.get()()), list(_DISPATCH_MODES.get()())


def wrapper_tensor(kind: type, like: torch.Tensor, **options: Any) -> Any:
    """Return a tensor of class `kind` without numbers: shape, strides and type are those of `like`.

    :param options: replace what `like` says, or add ``requires_grad``.

    `torch.Tensor._make_wrapper_subclass`.
    """
    facts = {"size": like.size(), "strides": like.stride(), "dtype": like.dtype,
             "device": like.device, "layout": like.layout}  # fmt: skip
    return _MAKE_WRAPPER.of(kind)(kind, **{**facts, **options})


def same_memory_as(kind: type, tensor: torch.Tensor) -> Any:
    """Return `tensor` as of class `kind`, in the same memory: `torch.Tensor._make_subclass`."""
    return _MAKE_SUBCLASS.of(kind)(kind, tensor)


def correct_aliasing(operator: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return `out`, with storages shared, and inputs returned, as the operator's signature says.

    `torch.utils._python_dispatch.return_and_correct_aliasing`.
    """
    return _CORRECT_ALIASING.get()(operator, args, kwargs, out)


def each_leaf(function: Callable[[Any], Any], values: Any) -> Any:
    """Return nested lists, tuples and dicts with the function applied to each value in them.

    `torch.utils._pytree.tree_map`.
    """
    return _TREE_MAP.get()(function, values)


def without_subclasses() -> Any:
    """Return a context in which no subclass is asked by `__torch_function__`.

    `torch._C.DisableTorchFunctionSubclass`; modes are asked still.
    """
    return _NO_SUBCLASSES.get()()


def without_functions() -> Any:
    """Return a context in which neither subclasses nor function modes are asked.

    `torch._C.DisableTorchFunction`.
    """
    return _NO_FUNCTIONS.get()()


def without_dispatch() -> Any:
    """Return a context in which no `__torch_dispatch__` is asked, of a class or of a mode.

    `torch._C._DisableTorchDispatch`.
    """
    return _NO_DISPATCH.get()()
