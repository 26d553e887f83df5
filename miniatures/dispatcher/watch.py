"""PyTorch's registrations and tables in the miniature's terms, and random operators for both."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from pathlib import Path
from subprocess import run
from typing import Any

import torch
from torch import Tensor

from insidetorch.errors import BookError
from insidetorch.facts import tool
from insidetorch.private.keys import key_bits, keys_behind, runtime_keys, thread_sets
from insidetorch.private.name import Name
from insidetorch.private.tables import computed_table, kernel_library, registrations
from insidetorch.watch.modes import each_call
from miniatures.dispatcher.tables import Dispatcher, Kernel, Keys, Operator, aliases
from miniatures.dispatcher.watch_codegen import tables

AUTOGRAD_BY_HAND = ("AutogradOther", "AutogradNestedTensor")


_DANGLING = Name("torch._C._dispatch_find_dangling_impls")


def undefined_kernels() -> list[str]:
    """Return the names under which kernels were registered that nobody has defined.

    `torch._C._dispatch_find_dangling_impls`.
    """
    lines = [line for text in _DANGLING.get()() for line in text.splitlines()]
    return sorted(line.removeprefix("name: ") for line in lines if line.startswith("name: "))


def union(*tensors: Tensor) -> int:
    """Return the union of the tensors' key sets."""
    return reduce(or_, map(key_bits, tensors), 0)


def keys_here() -> Keys:
    """Return the keys of the installed release."""
    return Keys(*runtime_keys())


def dispatcher_here() -> Dispatcher:
    """Return a miniature with the keys and the fallbacks of the installed release.

    The fallbacks are what is in the table of an operator that has no kernel at all.
    """
    keys = keys_here()
    autograd = [*keys.family("Autograd"), *AUTOGRAD_BY_HAND]
    small = Dispatcher(keys, {key: keys_behind(key) for key in autograd})
    library = kernel_library("insidetorch_bare", "nowhere")
    library.define("bare() -> ()", "", ())
    for key, (place, _) in computed_table("insidetorch_bare::bare").items():
        falls = place.startswith("fallthrough ")
        run = _no_data if key == "Meta" else partial(_pass_on, small, key)
        small.fallbacks[key] = Kernel(place, None if falls else run)
    return small


def _no_data(op: Operator, *rest: Any) -> Any:
    """Do as the fallback for meta tensors does where nobody wrote a shape rule."""
    raise NotImplementedError(f"{op.name}: attempted to run this operator with Meta tensors")


def _pass_on(small: Dispatcher, key: str, op: Operator, keys: int, *args: Any) -> Any:
    """Do as most fallbacks do in the end: hand on to what is behind the key.

    Autograd's hands on to what is behind all autograd keys.
    """
    key = "AutogradOther" if key.startswith("Autograd") else key
    return small.redispatch(op, keys & small.keys.below(key), *args)


def copied(operator: str, small: Dispatcher) -> Operator:
    """Return an operator of the miniature with PyTorch's registrations of `operator`."""
    op = Operator(operator, small)
    for key, place, how in reversed(registrations(operator)):
        falls = how.startswith("fallthrough")
        op.register(
            key, Kernel(f"fallthrough {place}" if falls else place, None if falls else print)
        )
    return op


def table_of(op: Operator) -> dict[str, tuple[str, str]]:
    """Return the table that the miniature computes, in the form of `computed_table`."""
    entries = {key: op.entry(key) for key in ("Undefined", *op.dispatcher.keys.runtime)}
    return {key: (kernel.where, rule) for key, (kernel, rule) in entries.items() if kernel}


# ── What a reader sees ──────────────────────────────────────────────────────────────────────────


_DEFINED: dict[str, list[Any]] = {}  # the libraries of `add_kernel`, kept


@dataclass(frozen=True)
class Step:
    """One key that a call has to do with.

    :param fate: ``excluded`` by the thread, ``falls through``, ``runs first``, ``runs next`` for
        those behind it down to the first backend, or ``not reached``.
    :param kernel: where the kernel in the operator's table was registered.
    """

    key: str
    fate: str
    kernel: str


def walk(operator: str, *tensors: Tensor) -> list[Step]:
    """Return the keys of a call on this thread, the first served first, each with its fate."""
    keys, places = keys_here(), computed_table(operator)
    backends = aliases(keys)["CompositeExplicitAutograd"]
    included, excluded = thread_sets()
    left, steps, fate = union(*tensors) | included, [], "runs first"
    while (name := keys.top(left)) != "Undefined":
        place = places.get(name, ("no kernel", ""))[0]
        left = keys.without(left, keys.bits[name])
        if keys.without(keys.bits[name], excluded) != keys.bits[name]:
            steps.append(Step(name, "excluded", place))
        elif place.startswith("fallthrough "):
            steps.append(Step(name, "falls through", place.removeprefix("fallthrough ")))
        else:
            steps.append(Step(name, fate, place))
            fate = "not reached" if name in backends or fate == "not reached" else "runs next"
    return steps


def runs(*tensors: Tensor, operator: str = "aten::add.Tensor") -> list[str]:
    """Return the keys of a call whose kernels run, by `walk`, down to the first backend."""
    return [step.key for step in walk(operator, *tensors) if step.fate.startswith("runs")]


def kinds_of_tensors() -> dict[str, Tensor]:
    """Return tensors whose key sets differ, or might be thought to differ, by what they are.

    Creating quantized tensors is deprecated in some releases, which warn; they are wanted here for
    their keys.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = torch.quantize_per_tensor(torch.ones(2), 1, 0, torch.qint8)
    with torch.inference_mode():
        inference = torch.ones(2)
    return {
        "dense": torch.ones(2),
        "requires grad": torch.ones(2, requires_grad=True),
        "float64": torch.ones(2).double(),
        "sparse": torch.eye(2).to_sparse(),
        "oneDNN layout": torch.ones(2).to_mkldnn(),
        "conjugated": torch.ones(2, dtype=torch.cfloat).conj(),
        "meta": torch.ones(2, device="meta"),
        "qint8": quantized,
        "made in inference mode": inference,
    }


def passive_mode() -> Any:
    """Return a `TorchDispatchMode` that does nothing but call the operator."""
    return each_call(lambda function, args, kwargs: function(*args, **kwargs))


def functionalities(bits: int) -> list[str]:
    """Return the functionalities in a key set, also those that PyTorch's own text leaves out.

    A key set is printed as runtime keys, so a functionality that needs a backend is not printed
    where the set has none.
    """
    keys = keys_here()
    found = []
    for place, family in enumerate(keys.families, start=len(keys.backends)):
        if bits >> place & 1:
            prefix = family[0].removesuffix(keys.backends[0]) or "Dense"
            found.append(prefix if len(family) > 1 else family[0])
    return found


def seen_inside(mode: Callable[..., Any]) -> tuple[str, str, str]:
    """Say how the thread's sets, and the keys of a tensor, differ inside a mode or a transform.

    Each of the three is a text such as ``+Python −ADInplaceOrView``, or a dash.

    :param mode: makes a context, or is a transform that takes a function, such as `torch.vmap`.
    """
    plain, seen = (*thread_sets(), key_bits(torch.ones(2))), []

    def look(tensor: Tensor) -> Tensor:
        seen.append((*thread_sets(), key_bits(tensor)))
        return tensor

    tensor = torch.ones(2)
    if any(mode is known for known in (torch.vmap, torch.func.grad)):
        mode(lambda x: look(x).sum())(tensor)
    else:
        with mode():
            look(tensor)
    texts = []
    for before, now in zip(plain, seen[0], strict=True):
        more = [f"+{name}" for name in functionalities(now & ~before)]
        less = [f"−{name}" for name in functionalities(before & ~now)]
        texts.append(" ".join(more + less) or "–")
    return texts[0], texts[1], texts[2]


def add_kernel(
    operator: str,
    key: str,
    kernel: Callable[..., Any] | None,
    *,
    with_keys: bool = False,
    schema: str = "(Tensor x) -> Tensor",
) -> None:
    """Register a kernel in PyTorch for good; define the operator if it is new.

    In tables, the place of the kernel is shown as the name of the key.

    :param operator: ``namespace::name``.
    :param kernel: None defines the operator alone.
    :param with_keys: give the kernel the key set of the call as its first argument.
    """
    space, _, name = operator.partition("::")
    if operator not in _DEFINED:
        _DEFINED[operator] = [kernel_library(space, "schema")]
        _DEFINED[operator][0].define(name + schema, "", ())
    if kernel is not None:
        _DEFINED[operator].append(kernel_library(space, key))
        _DEFINED[operator][-1].impl(name, key, kernel, with_keys)


def backend_select(operator: str) -> str:
    """Return the kernel that PyTorch's generator writes for BackendSelect of ``empty.names``, …"""
    from torchgen.context import native_function_manager
    from torchgen.gen import ComputeBackendSelect, parse_native_yaml
    from torchgen.selective_build.selector import SelectiveBuilder
    from torchgen.utils import Target

    native, tags, _ = tables()
    parsed = parse_native_yaml(native, tags).native_functions
    function = next(f for f in parsed if str(f.func.name) == operator)
    with native_function_manager(function):
        write = ComputeBackendSelect(Target.DEFINITION, SelectiveBuilder.get_nop_selector())
        return str(write(function)).strip()


def compiled(*sources: str) -> None:
    """Compile C++ that registers operators, and load it; the result is kept between builds.

    :raises BookError: there is no C++ compiler, or it refuses the source.
    """
    from torch.utils import cpp_extension

    build: Any = cpp_extension.load_inline
    if tool("c++", "g++", "clang++") is None:
        raise BookError("This cell compiles C++, and there is no compiler: install g++.")
    text = "\n".join(sources)
    name = f"inside_{hashlib.sha256((text + torch.__version__).encode()).hexdigest()[:12]}"
    try:
        build(name, text, is_python_module=False, no_implicit_headers=True, extra_cflags=["-O2"])
    except RuntimeError as error:
        said = re.search(r"error: .*", str(error))
        reason = said[0] if said else str(error).splitlines()[0]
        raise BookError(f"The C++ does not compile ({reason}): correct it.") from None


def asked_of_torch(namespace: str) -> list[str]:
    """Return the names of functions that a compiled library of operators leaves to PyTorch.

    :raises BookError: there is no `nm`, which comes with a C++ compiler.
    """
    nm = tool("nm")
    if nm is None:
        raise BookError(
            "This cell lists the names in a library, and there is no nm: install binutils."
        )
    for path in torch.ops.loaded_libraries:
        if f"{namespace}\0".encode() in Path(path).read_bytes():
            said = run(
                [nm, "-D", "--undefined-only", path], capture_output=True, text=True, check=True
            )
            names = [line.split()[-1] for line in said.stdout.splitlines()]
            return [name for name in names if re.search("torch|c10|2at", name)]
    raise BookError(f"No library with operators of {namespace} was compiled: compile it first.")
