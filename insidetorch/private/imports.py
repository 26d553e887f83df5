"""`import torch`: the extension module, the check after a fork, where the compiler keeps files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from insidetorch.private.cuda import _BUILT_FOR
from insidetorch.private.name import Name, replace

_EXTENSION = Name("torch._C")
_VARIABLE_FUNCTIONS = Name("torch._C._VariableFunctions")
_IN_BAD_FORK = Name("torch.cuda._is_in_bad_fork")
_CACHE_FOLDER = Name("torch._inductor.runtime.cache_dir_utils.cache_dir")
_OWN_CACHE_FOLDER = Name("torch._inductor.runtime.cache_dir_utils.default_cache_dir")


def extension() -> Any:
    """Return `torch._C`, the extension module behind torch."""
    return _EXTENSION.get()


def variable_functions(module: Any) -> Any:
    """Return the object of an extension module that holds the functions of the torch namespace.

    `torch._C._VariableFunctions`.
    :param module: what `extension` returned.
    """
    return _VARIABLE_FUNCTIONS.of(module)


def answer_fork_check(answer: Callable[[], bool]) -> None:
    """Have `torch.cuda` ask `answer` whether its process is a child that must not use CUDA.

    `torch.cuda._is_in_bad_fork`, replaced: a build without CUDA always says no.
    """
    replace(_IN_BAD_FORK, answer)


def cache_folder() -> str:
    """Return the folder in which the compiler keeps what it made.

    `torch._inductor.runtime.cache_dir_utils.cache_dir`.
    """
    return str(_CACHE_FOLDER.get()())


def own_cache_folder() -> str:
    """Return the folder that the compiler takes where no variable names one.

    `torch._inductor.runtime.cache_dir_utils.default_cache_dir`.
    """
    return str(_OWN_CACHE_FOLDER.get()())


def all_built_for() -> set[int]:
    """Return for which compute capabilities some wheel of the release has code.

    `torch.cuda.PYTORCH_RELEASES_CODE_CC`; before 2.13 it does not ask for the processor.
    """
    wheels = [list(code.values()) if isinstance(code, dict) else [code]
              for code in _BUILT_FOR.get().values()]  # fmt: skip
    return set().union(*(one for codes in wheels for one in codes))
