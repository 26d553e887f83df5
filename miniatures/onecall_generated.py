"""The generated C++ that one operator lives in, made again by the wheel's own generator."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from insidetorch.display import Display, escape
from insidetorch.errors import BookError

FILES = (
    "python_torch_functions", "VariableType", "Operators", "RegisterCPU", "RegisterCUDA",
    "UfuncCPU", "UfuncCUDA",
)  # fmt: skip
"""Beginnings of the names of the files that a call of a pointwise operator goes through."""

WHOLE = ("VariableType", "RegisterCPU", *(["RegisterCUDA"] if torch.version.cuda else []))
"""Of these the file is made as the build made it, line by line: what is registered at run time
names a line in it. Of the others, only what belongs to the operators is made."""


def generated(operator: str, *others: str) -> dict[str, str]:
    """Return the text of each generated file that holds code of an operator, by file name.

    A process of its own runs the generator of the installed torch, for some seconds.

    :param operator: name without overload, such as ``add``.
    :param others: operators whose Python functions and `at::_ops` are made too.
    :raises BookError: the generator failed.
    """
    with TemporaryDirectory(prefix="insidetorch-") as folder:
        program = "import sys; from miniatures.onecall_generated import main; main(*sys.argv[1:])"
        command = [sys.executable, "-c", program, folder, operator, *others]
        root = str(Path(__file__).parent.parent)
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise BookError(
                f"torchgen could not make the files of {operator} again ({reason}): "
                "install a release wheel of PyTorch, which carries its generator whole."
            )
        return {
            path.name: path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.*"))
        }


def main(folder: str, *operators: str) -> None:
    """Run the three generators of PyTorch's build, and write what concerns the operators."""
    gen, python, autograd, selective = (
        import_module(f"torchgen.{name}")
        for name in (
            "gen",
            "packaged.autograd.gen_python_functions",
            "packaged.autograd.gen_autograd",
            "selective_build.selector",
        )
    )
    _write_only(operators)
    packaged = Path(str(gen.__file__)).parent / "packaged"
    where = packaged / "autograd"
    native, tags = (
        str(packaged / f"ATen/native/{name}.yaml") for name in ("native_functions", "tags")
    )
    python.gen(folder, native, tags, str(where / "deprecated.yaml"), str(where / "templates"))
    everything = selective.SelectiveBuilder.get_nop_selector()
    autograd.gen_autograd(native, tags, folder, str(where), everything)
    for part in ("core", "ops"):
        Path(folder, part).mkdir()
    sys.argv = ["torchgen.gen", "-s", str(packaged / "ATen"), "-d", folder, "--generate"]
    sys.argv += ["sources", "--per-operator-headers", "--aoti-install-dir", f"{folder}/aoti"]
    gen.main()


def _write_only(operators: tuple[str, ...]) -> None:
    """Have the generators skip all files that are not wanted, and all operators in the others."""
    utils = import_module("torchgen.utils")
    manager = utils.FileManager
    write, write_sharded = manager.write_with_template, manager.write_sharded_with_template
    parts: dict[str, str] = {}

    def only(self: Any, filename: str | Path, *rest: Any, **options: Any) -> None:
        stem = Path(filename).stem
        base, _, part = stem.rpartition("_")
        if stem.startswith(FILES) and parts.get(base, part) == part and "Everything" not in stem:
            write(self, filename, *rest, **options)

    def sharded(
        self: Any, filename: str, template: str, items: Iterable[Any], *,
        key_fn: Callable[[Any], str], num_shards: int, **options: Any,
    ) -> None:  # fmt: skip
        def shard(key: str) -> int:
            number: int = utils.string_stable_hash(key) % num_shards
            return number

        if not filename.startswith(FILES):
            return
        kept = [item for item in items if key_fn(item) in operators]
        if filename.startswith(WHOLE):
            parts[Path(filename).stem] = str(shard(operators[0]))
            kept = [item for item in items if shard(key_fn(item)) == shard(operators[0])]
        options |= {"key_fn": key_fn, "num_shards": num_shards}
        write_sharded(self, filename, template, kept, **options)

    manager.write_with_template, manager.write_sharded_with_template = only, sharded


def function(files: Mapping[str, str], name: str, beginning: str) -> tuple[str, str, int]:
    """Return file, code and first line of a definition in the generated files.

    :param name: of a function or a struct.
    :param beginning: of the file's name.
    :raises BookError: no such file has it.
    """
    for file, text in files.items():
        if file.startswith(beginning):
            pattern = rf"^[^\n;]*\b{name}\b[^;{{]*\{{\n.*?^\}};?$"
            found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
            if found:
                return file, found[0], text.count("\n", 0, found.start()) + 1
    raise BookError(f"No generated file {beginning}… defines {name}: give another name.")


def show(
    files: Mapping[str, str], name: str, beginning: str, *, start: str = "", end: str = ""
) -> Display:
    """Show a definition in the generated files, without what only debug builds compile.

    Line numbers are shown where they are the build's.

    :param start: begin with the first line that holds this text.
    :param end: stop at the first line, from there on, that holds this text.
    :raises BookError: the definition or a text is not there.
    """
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import CppLexer

    file, code, number = function(files, name, beginning)
    lines = code.splitlines()
    first = _line(lines, start, name) if start else 0
    last = first + _line(lines[first:], end, name) if end else len(lines) - 1
    debug = [
        row
        for block in re.finditer(r"^ *#ifndef NDEBUG\n.*?#endif$", code, re.M | re.S)
        for row in range(code.count("\n", 0, block.start()), code.count("\n", 0, block.end()) + 1)
    ]
    rows = [
        (str(number + row) * (file.startswith(WHOLE) and not part), text)
        for row in range(first, last + 1)
        if row not in debug
        for part, text in enumerate(_broken(lines[row]))
    ]
    chosen = "\n".join(text for _, text in rows)
    coloured = highlight(chosen, CppLexer(stripnl=False), HtmlFormatter(nowrap=True)).split("\n")
    width = max(len(n) for n, _ in rows)
    body = "".join(
        f'<span class="it-line" data-n="{n}">{line}\n</span>'
        for (n, _), line in zip(rows, coloured, strict=False)
    )
    note = "written by torchgen from the installed tables"
    html = (
        f'<figure class="it it-excerpt"><figcaption><span class="it-symbol">{escape(name)}</span>'
        f'<span class="it-place">{escape(file)}</span><span>{note}</span></figcaption>'
        f'<div class="highlight"><pre class="it-code" style="--it-digits:{width}" tabindex="0" '
        f'role="region" aria-label="{escape(name)}">{body}</pre></div></figure>'
    )
    plain = [f"{n:>{width}}  {text}".rstrip() for n, text in rows]
    return Display(html, "\n".join([f"{name} · {file} · {note}", *plain]))


def _broken(line: str, width: int = 74) -> list[str]:
    """Return a line of C++ as lines of at most `width` characters; none for an empty line."""
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _line(lines: list[str], text: str, name: str) -> int:
    for number, line in enumerate(lines):
        if text in line:
            return number
    raise BookError(f"The generated {name} has no line with {text!r}: choose another text.")


def registered(dump: str, files: Mapping[str, str]) -> list[tuple[str, str, int, str]]:
    """Return key, file, line and that line's text for what a dispatch dump says was registered.

    :param dump: as `insidetorch.private.dispatch_dump` returns it. Registrations in files that
        were not made are left out.
    """
    rows = []
    for key, path, line in re.findall(r"^(\S+): registered at (\S+):(\d+)", dump, re.M):
        file = path.rpartition("/")[2]
        if file in files and file.startswith(WHOLE):
            text = files[file].splitlines()[int(line) - 1]
            rows.append((key, file, int(line), text.strip()))
    return rows
