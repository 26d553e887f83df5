"""What Inductor does with a function: its graph, its loop nests, its decisions, its code."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor


@dataclass
class Stages:
    """What is known of a function on its way through Inductor.

    :param graph: the operators after decomposition, one line each.
    :param nests: for each loop nest before fusion: name, loops kept, loops reduced, what is read.
    :param ops: for each of these nests, the operators that are computed in it.
    :param decisions: in order, pairs of nests and what became of them.
    :param groups: the numbers of the nests that are in one loop nest after fusion.
    :param code: the module that Inductor writes, kernels and wrapper.
    """

    graph: list[str] = field(default_factory=list)
    nests: list[list[str]] = field(default_factory=list)
    ops: list[list[str]] = field(default_factory=list)
    decisions: list[tuple[str, str, str]] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    code: str = ""

    @property
    def loops(self) -> str:
        """Return the kernels: C++ without the module around it."""
        return "\n\n".join(kernels(self.code))

    @property
    def wrapper(self) -> str:
        """Return the Python function that allocates memory and calls the kernels."""
        return wrapper(self.code)


def private_caches(headers: bool = False) -> str:
    """Give this process empty caches of its own, removed at its end, and one compile thread.

    Call it before anything is compiled.

    :param headers: precompile PyTorch's C++ header, as Inductor does by default, into these
        caches instead of the folder for all processes of a user: some seconds once, which pays
        from the fifth kernel on. Else it is read anew for each kernel.
    """
    given = os.environ.get("TORCHINDUCTOR_CACHE_DIR")  # PyTorch sets it too, once it was asked
    if given and os.environ.get("INSIDETORCH_BUILD"):
        # A build names one, and may end this process without a chance to clean up.
        folder = str(Path(given) / f"cold-{torch.__version__}")
        shutil.rmtree(folder, ignore_errors=True)
        Path(folder).mkdir(parents=True)
    else:
        folder = tempfile.mkdtemp(prefix="it-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ |= {
        "TORCHINDUCTOR_CACHE_DIR": folder,
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
        "TRITON_CACHE_DIR": folder,
    }
    with warnings.catch_warnings():  # importing it uses a deprecated part of PyTorch
        warnings.simplefilter("ignore")
        import_module("torch._inductor.compile_fx")
    header_folder()
    if headers and shutil.which("openssl"):  # with which Inductor makes their names
        _keep_headers_in(Path(folder, "headers"))
    return folder


def _keep_headers_in(folder: Path) -> None:
    from torch._inductor import codecache, config

    codecache._HEADER_DIR = str(folder)
    codecache._HEADER_LOCK_DIR = str(folder / "locks")
    config.cpp_cache_precompile_headers = True


@contextmanager
def settings(**changes: object) -> Iterator[None]:
    """Change settings of `torch._inductor.config` for a block; ``__`` stands for a dot."""
    from torch._inductor import config

    with config.patch({name.replace("__", "."): value for name, value in changes.items()}):
        yield


def setting(name: str) -> object:
    """Return a setting of `torch._inductor.config`."""
    from torch._inductor import config

    value: object = config
    for part in name.split("."):
        value = getattr(value, part)
    return value


def stages(function: Callable[..., Any], *inputs: Tensor, cpp_wrapper: bool = False) -> Stages:
    """Run Inductor on a function up to its code; no compiler is called and nothing is kept.

    The steps of `torch._inductor.compile_fx` for inference, by hand.
    """
    from torch._inductor.debug import DebugContext
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.fx_passes.post_grad import post_grad_passes
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    seen = Stages()
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    fake = [mode.from_tensor(x, static_shapes=True) for x in inputs]
    with mode:
        traced = make_fx(function, decomposition_table=select_decomp_table())(*fake)
    seen.graph = [
        node.format_node().split(" : ")[0].strip("%") + " = " + _call(node)
        for node in traced.graph.nodes
        if node.op == "call_function"
    ]
    with (
        V.set_fake_mode(mode),
        V.set_debug_handler(DebugContext()),
        settings(cpp__threads=2, cpp_wrapper=cpp_wrapper),
        _watched(seen),
    ):
        post_grad_passes(traced, is_inference=True)
        graph = GraphLowering(
            traced, example_inputs=fake, shape_env=mode.shape_env, is_inference=True,
            cpp_wrapper=cpp_wrapper,
        )  # fmt: skip
        with V.set_graph_handler(graph):
            graph.run(*fake)
            code = graph.codegen()[0]
    seen.code = str(getattr(code, "value", code))
    return seen


def compiled(function: Callable[..., Any], *inputs: Tensor, **options: Any) -> tuple[Any, str]:
    """Return the result of ``torch.compile(function)(*inputs)`` and the module that was written."""
    from torch._inductor.utils import run_and_get_code

    torch.compiler.reset()
    result, modules = run_and_get_code(torch.compile(function, **options), *inputs)
    return result, modules[0] if modules else ""


def arriving(function: Callable[..., Any], *inputs: Tensor) -> list[str]:
    """Return the operators of a compiled function when its lowering begins.

    Dynamo, AOTAutograd and all passes have run; then it is stopped, so nothing is compiled.
    """
    from torch._inductor.custom_graph_pass import CustomGraphPass

    met: list[str] = []

    class Last(CustomGraphPass):
        def __call__(self, graph: Any) -> None:
            met.extend(n.target.__name__ for n in graph.nodes if n.op == "call_function")
            raise InterruptedError

        def uuid(self) -> str:
            return "arriving"

    torch.compiler.reset()
    with settings(post_grad_custom_post_pass=Last()):
        try:
            torch.compile(function)(*inputs)
        except Exception:
            if not met:
                raise
    torch.compiler.reset()
    return met


def training_modules(function: Callable[..., Tensor], x: Tensor) -> list[str]:
    """Return the modules written for ``torch.compile(function)(x).backward()``, in order."""
    from torch._inductor.utils import run_and_get_code

    torch.compiler.reset()
    run, leaf = torch.compile(function), x.detach().requires_grad_()
    modules: list[str] = run_and_get_code(lambda: run(leaf).backward())[1]  # type: ignore[no-untyped-call]
    return modules


def bfloat16_packed() -> bool:
    """Tell whether oneDNN multiplies bfloat16 matrices on this processor."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def kernels(code: str) -> list[str]:
    """Return the C++ functions in a module that Inductor wrote, without casts of constants."""
    found = re.findall(r'extern "C"\s+(void\s+kernel.*?)\n\'\'\'', code, re.DOTALL)
    return [tidy(text) for text in found]


def tidy(code: str) -> str:
    """Return C++ without what every kernel repeats: casts of indices, division checks, braces."""
    code = re.sub(r"static_cast<int64_t>\((-?\d+)L?\)", r"\1", code)
    code = re.sub(r"static_cast<int64_t>\(([^()]*)\)", r"\1", code)
    code = re.sub(r"at::vec::(Vectorized|vec_reduce_all|clamp_min|maximum)", r"\1", code)
    lines = [line for line in code.splitlines() if "integer_div_error" not in line]
    text = re.sub(r",\n\s+", ", ", re.sub(r"\s+kernel", " kernel", "\n".join(lines)))
    while (shorter := _without_bare_block(text)) != text:
        text = shorter
    text = re.sub(r"\n *int tid = .*| num_threads\(\d+\)", "", text)
    text = re.sub(  # the longest line of a reduction
        r"^( *)(.*vec_reduce_all<.*>\()(\[\].*\{.*\}), (tmp\w+\);)$",
        r"\1\2\n\1    \3,\n\1    \4", text, flags=re.MULTILINE,
    )  # fmt: skip
    text = re.sub(r"^( *[^#\s].*[^;{}\s])\n *\{$", r"\1 {", text, flags=re.MULTILINE)
    return re.sub(r"^( +)", lambda m: m[1][::2], text, flags=re.MULTILINE)


def _without_bare_block(text: str) -> str:
    """Return C++ in which the first bare block at the end of another one is dissolved."""
    lines = text.split("\n")
    for start, line in enumerate(lines[1:], 1):
        indent = len(line) - len(line.lstrip())
        bare = line.strip() == "{" and re.search(r"[{;]$", lines[start - 1])
        if not bare:
            continue
        end = next(n for n in range(start + 1, len(lines)) if lines[n] == " " * indent + "}")
        if lines[end + 1] == " " * (indent - 4) + "}":  # nothing follows: no name can clash
            inner = [one.removeprefix(" " * 4) for one in lines[start + 1 : end]]
            return "\n".join(lines[:start] + inner + lines[end + 1 :])
    return text


def wrapper(code: str) -> str:
    """Return the body of the function `call` in a module that Inductor wrote."""
    found = re.search(
        r"^( *)def call\((?:self, )?args\):\n(.*?\n)\1    return .*?$", code, re.M | re.S
    )
    if found is None:
        return ""
    return re.sub(rf"^{found[1]}", "", found[0], flags=re.MULTILINE)


def _call(node: Any) -> str:
    args = ", ".join(str(arg) for arg in node.args)
    return f"{node.target}({args})"


@contextmanager
def _watched(seen: Stages) -> Iterator[None]:
    """Record nests, decisions and groups of the scheduler."""
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.scheduler import Scheduler, WhyNoFuse

    fuse_nodes, fuse_two, why = Scheduler.fuse_nodes, Scheduler.fuse_two_nodes, WhyNoFuse.__call__
    fits: list[Any] = [CppScheduling.can_fuse_vertical, CppScheduling.can_fuse_horizontal]

    def note(one: Any, other: Any, what: str) -> None:
        entry = (_name(one), _name(other), what)
        if entry not in seen.decisions:
            seen.decisions.append(entry)

    def nodes(self: Any, given: Any) -> Any:
        seen.nests = [_nest(node) for node in given]
        seen.ops = [_ops(node) for node in given]
        out = fuse_nodes(self, given)
        seen.groups = sorted(sorted(_numbers(node)) for node in out)
        return out

    def two(self: Any, one: Any, other: Any, fused: Any) -> Any:
        note(one, other, "fused")
        return fuse_two(self, one, other, fused)

    def reason(self: Any, text: str, *args: Any) -> None:
        pair = [name.replace("_", "+").replace("op", "") for name in (self.name1, self.name2)]
        seen.decisions.append((pair[0], pair[1], text % args if args else text))
        why(self, text, *args)

    def asked(number: int) -> Callable[..., bool]:
        def ask(self: Any, one: Any, other: Any) -> bool:
            answer: bool = fits[number](self, one, other)
            if not answer:
                note(one, other, "the backend refuses")
            return answer

        return ask

    with (
        mock.patch.object(Scheduler, "fuse_nodes", nodes),
        mock.patch.object(Scheduler, "fuse_two_nodes", two),
        mock.patch.object(WhyNoFuse, "__call__", reason),
        mock.patch.object(CppScheduling, "can_fuse_vertical", asked(0)),
        mock.patch.object(CppScheduling, "can_fuse_horizontal", asked(1)),
    ):
        yield


def _numbers(node: Any) -> list[int]:
    return [int(one.get_name()[2:]) for one in node.get_nodes()]


def _name(node: Any) -> str:
    return "+".join(str(number) for number in sorted(_numbers(node)))


def _nest(node: Any) -> list[str]:
    name = str(_numbers(node)[0])
    if not hasattr(node, "group"):
        only_memory = type(node).__name__.startswith("Nop")
        return [name, "only memory" if only_memory else "a library", "", ""]
    kept, reduced = node.group[1]
    reads = sorted(dep.name for dep in node.read_writes.reads)
    return [name, " × ".join(map(str, kept)), " × ".join(map(str, reduced)), ", ".join(reads)]


def _ops(node: Any) -> list[str]:
    inside = [one for one in getattr(node.node, "origins", ()) if one.op == "call_function"]
    order = {one: at for at, one in enumerate(inside[0].graph.nodes)} if inside else {}
    return [str(one.target).split(".")[1] for one in sorted(inside, key=order.__getitem__)]


def tables() -> dict[str, int]:
    """Return how many operators Inductor decomposes, lowers, and leaves to the eager kernel."""
    from torch._inductor.decomposition import decompositions
    from torch._inductor.lowering import fallbacks, lowerings

    return {
        "decompositions": len(decompositions),
        "lowerings": len(lowerings),
        "of them fallbacks": len(fallbacks),
    }


def modes() -> dict[str, dict[str, object]]:
    """Return the modes of `torch.compile` and the settings that each changes."""
    from torch._inductor import list_mode_options

    known: dict[str, dict[str, object]] = list_mode_options()
    return known


def counted() -> dict[str, int]:
    """Return what the compiler counted since the last call: cache hits, graphs skipped."""
    from torch._dynamo.utils import counters

    found = {**counters["aot_autograd"], **counters["inductor"]}
    counters.clear()
    return found


def files(folder: str) -> dict[str, int]:
    """Return how many files of each kind are in a cache folder."""
    kinds = {"aotautograd": "graph with its autograd", "fxgraph": "graph"}
    suffixes = {".cpp": "C++ source", ".so": "library", ".py": "Python module"}
    found: dict[str, int] = {}
    for path in sorted(Path(folder).rglob("*")):
        top = path.relative_to(folder).parts[0]
        if path.is_file() and top != "locks":
            kind = kinds.get(top, suffixes.get(path.suffix, "other"))
            found[kind] = found.get(kind, 0) + 1
    return found


@cache
def header_folder() -> str:
    """Return where Inductor keeps precompiled headers when `private_caches` has not moved them."""
    from torch._inductor import codecache

    return str(codecache._HEADER_DIR)


def compile_workers() -> list[str]:
    """Return the numbers of this process's children that compile for Inductor, on Linux."""
    tasks = Path("/proc/self/task")
    lists = tasks.glob("*/children") if tasks.is_dir() else []
    numbers = [number for one in lists for number in _content(one).split()]
    return [n for n in numbers if "compile_worker" in _content(Path("/proc", n, "cmdline"))]


def _content(path: Path) -> str:
    """Read a file of ``/proc``; empty if its thread or process has ended meanwhile."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
