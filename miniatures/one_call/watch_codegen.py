"""The generated C++ that one operator lives in, made again by the wheel's own generator."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from insidetorch.display import Display, marked
from insidetorch.errors import BookError
from insidetorch.show.listings import listing
from miniatures.dispatcher.watch_codegen import tables

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
        program = f"import sys; from {__name__} import main; main(*sys.argv[1:])"
        command = [sys.executable, "-c", program, folder, operator, *others]
        root = str(Path(__file__).parents[2])
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
    native, tags, packaged = tables()
    where = packaged / "autograd"
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
    files: Mapping[str, str],
    name: str,
    beginning: str,
    *,
    start: str = "",
    end: str = "",
    notes: Mapping[str, str] | None = None,
) -> Display:
    """Show a definition in the generated files, without what only debug builds compile.

    Line numbers are shown where they are the build's.

    :param start: begin with the first line that holds this text.
    :param end: stop at the first line, from there on, that holds this text.
    :param notes: text on a shown line → what that line decides, as `source` has them.
    :raises BookError: the definition or a text is not there.
    """
    file, code, number = function(files, name, beginning)
    shown = listing(
        code,
        name,
        place=file,
        note="written by torchgen from the installed tables",
        start=start,
        end=end,
        without=r"^ *#ifndef NDEBUG$.*?#endif$|^$",
        first=number if file.startswith(WHOLE) else None,
        width=74,
    )
    return _noted(shown, notes) if notes else shown


def _noted(shown: Display, notes: Mapping[str, str]) -> Display:
    """Return a listing with numbers at some of its lines, and the notes below, in that order."""
    before, begin, rest = shown.html.partition("<pre")
    code, end, after = rest.partition("</pre>")
    lines, found = code.split("\n"), dict[int, str]()
    plain = [html.unescape(re.sub(r"<[^>]*>", "", line.rpartition('">')[2] if not at else line))
             for at, line in enumerate(lines)]  # fmt: skip
    for text, note in notes.items():
        at = next((n for n, line in enumerate(plain) if text in line and n not in found), None)
        if at is None:
            raise BookError(f"No shown line has {text!r}: give its note a text of another line.")
        found[at] = note
    for number, at in enumerate(sorted(found), start=1):
        lines[at] += f'<span class="it-note" data-note="{number}"></span>'
    words = [found[at] for at in sorted(found)]
    listed = f'<ol class="it-notes">{"".join(f"<li>{marked(one)}</li>" for one in words)}</ol>'
    code, after = "\n".join(lines), after.replace("</figure>", f"{listed}</figure>")
    said = "\n".join(f"{number}. {one}" for number, one in enumerate(words, start=1))
    return Display(f"{before}{begin}{code}{end}{after}", f"{shown.text}\n{said}", shown.record)


def entries_of(file: str) -> list[dict[str, Any]]:
    """Return the entries of a list that the generator reads, such as ``native_functions.yaml``."""
    import yaml

    packaged = Path(str(import_module("torchgen").__file__)).parent / "packaged/ATen/native"
    entries: list[dict[str, Any]] = yaml.safe_load((packaged / file).read_text(encoding="utf-8"))
    return entries


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
