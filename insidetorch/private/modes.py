"""Modes: code that sees each call of its thread, and tensors without memory."""

from __future__ import annotations

from typing import Any

from insidetorch.private.name import Name

_DISPATCH_MODE = Name("torch.utils._python_dispatch.TorchDispatchMode")
_FAKE_TENSOR_MODE = Name("torch._subclasses.fake_tensor.FakeTensorMode")
_DETECT = Name("torch._guards.detect_fake_mode")
_DEBUG_MODE = Name("torch.utils._debug_mode.DebugMode")
_POP_ONE = Name("torch.utils._python_dispatch._pop_mode_temporarily")
_POP_ALL = Name("torch.utils._python_dispatch._disable_current_modes")


def dispatch_mode() -> Any:
    """Return the class `TorchDispatchMode`: a subclass sees every ATen call of its thread.

    It lives in `torch.utils._python_dispatch`, a private module around a documented class.
    """
    return _DISPATCH_MODE.get()


def modes_off(innermost: bool) -> Any:
    """Return a context without the innermost dispatch mode of the thread, or without any.

    `_pop_mode_temporarily` and `_disable_current_modes` of `torch.utils._python_dispatch`.
    """
    return (_POP_ONE if innermost else _POP_ALL).get()()


def debug_mode(**options: Any) -> Any:
    """Return a context that records operators and, if asked, torch functions, as an indented list.

    `torch.utils._debug_mode.DebugMode`; its `debug_string()` is the list.
    """
    return _DEBUG_MODE.get()(**options)


def fake_tensor_mode(**options: Any) -> Any:
    """Return a context in which tensors have shapes, types and devices, and no memory.

    `torch._subclasses.fake_tensor.FakeTensorMode`.
    """
    return _FAKE_TENSOR_MODE.get()(**options)


def mode_of_fakes(values: Any) -> Any:
    """Return the fake mode that is in force, or that made one of the values; None if there is none.

    `torch._guards.detect_fake_mode`.
    """
    return _DETECT.get()(values)
