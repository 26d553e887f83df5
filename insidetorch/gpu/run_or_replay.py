"""The cell magic %%cuda: run on a GPU; elsewhere replay what was recorded on one, or say it is not.

``%%cuda name [--title "…"] [--memory 8GiB] [--gpus 1]``
"""

from __future__ import annotations

import ast
import json
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from insidetorch.display import Display, escape, show
from insidetorch.errors import BookError
from insidetorch.gpu import cell as cell_code
from insidetorch.gpu import machine
from insidetorch.gpu import recording as recordings
from insidetorch.gpu.cell import Label
from insidetorch.gpu.machine import Machine
from insidetorch.gpu.recording import Recording, Run

GUIDE = "../book/on-a-gpu-box.html"
"""The page that tells how to record, as seen from any page of the book."""
_TOLD = ("driver", "cuda", "torch", "torch_commit", "triton", "cudnn", "python", "clocks", "power")
_NO_DEVICE = "There is no CUDA device here."


@dataclass(frozen=True)
class Kept:
    """Data of a CUDA cell that other cells may read.

    :param value: what `record_data` was given.
    :param where: the machine, in a line; for a recording with its date.
    :param gpu: name of the GPU.
    :param live: it was measured in this session, not replayed.
    """

    value: Any
    where: str
    gpu: str
    live: bool


_kept: dict[str, Kept] = {}
_written: dict[str, Any] = {}


def register() -> None:
    """Register %%cuda in the running IPython shell."""
    from IPython import get_ipython

    get_ipython().register_magic_function(cuda, "cell", "cuda")


def cuda(line: str, cell: str) -> None:
    """Run the cell on a CUDA device; without one, replay its recording or say there is none.

    :param line: the cell's name and its options, see `cell_code.label`.
    :param cell: its code.
    :raises BookError: the label is malformed; or the recording was made from other code, and the
        book is being built. A reader gets a box that says so.
    """
    label = cell_code.label(line)
    here = _here()
    lack = shortage(label, here)
    if here is not None and not lack:
        show(live(label, here))
        take()
        _execute(cell)
        keep(take(), Kept(None, line_of(here), here.gpu, True))
        return
    root = recordings.folder()
    digest = cell_code.digest(cell, _earlier(label.name), _reached())
    recording = recordings.find(label.name, digest, root)
    if recording is None:
        show(not_recorded(label, lack) if root.is_dir() else not_at_hand(label, lack))
        return
    if recording.digest != digest:
        if os.environ.get("INSIDETORCH_BUILD"):
            recordings.refuse_stale(recording)
        show(stale(label, recording))
        return
    run = recordings.run_of(recording, root)
    show(provenance(label, recording, run))
    replay(recording, root)
    where = f"{line_of(run.machine)}, recorded {run.date[:10]}"
    keep(recording.data, Kept(None, where, run.machine.gpu, False))


def record_data(name: str, value: object) -> None:
    """Keep a JSON value of this CUDA cell, for cells that compare it with this build's CPU.

    :param name: what later cells ask for, unique in the chapter.
    :raises BookError: the value is no JSON value.
    """
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BookError(
            f"record_data({name!r}, …): the value cannot be stored as JSON ({error}); "
            "give numbers, text, lists and dictionaries, and no NaN."
        ) from None
    _written[name] = json.loads(text)


def kept(name: str) -> Kept | None:
    """Return the data that a CUDA cell of this session ran or replayed, or None."""
    return _kept.get(name)


def take() -> dict[str, Any]:
    """Return, and forget, what `record_data` was given since the last call."""
    values = dict(_written)
    _written.clear()
    return values


def keep(values: Any, origin: Kept) -> None:
    """Let later cells read `values`, by name, as coming from where `origin` came from."""
    for name, value in values.items():
        _kept[name] = Kept(value, origin.where, origin.gpu, origin.live)


def shortage(label: Label, here: Machine | None) -> str:
    """Return what `here` lacks for a cell, in words; empty if nothing, or if there is no GPU."""
    if here is None:
        return ""
    if len(here.gpus) < label.gpus:
        return f"It needs {label.gpus} GPUs, and this machine has {len(here.gpus)}."
    if here.memory < label.memory:
        return (
            f"It needs {label.memory / 2**30:.3g} GiB of GPU memory, "
            f"and this machine has {here.memory / 2**30:.3g} GiB."
        )
    return ""


def replay(recording: Recording, root: Path) -> None:
    """Publish the outputs of a recording, made safe."""
    from IPython.display import publish_display_data

    for output in recordings.replayed(recording, root):
        if "stream" in output:
            getattr(sys, output["stream"]).write(output["text"])
            getattr(sys, output["stream"]).flush()
        else:
            publish_display_data(output["data"], output["metadata"])  # type: ignore[no-untyped-call]


def line_of(here: Machine) -> str:
    """Return a machine in one line."""
    return f"{here.gpu}, CUDA {here.cuda}, torch {here.torch}"


def live(label: Label, here: Machine) -> Display:
    """Return the line above the output of a cell that runs on this machine's GPU."""
    text = f"%%cuda {label.heading}: running on {line_of(here)}"
    return Display(
        f'<div class="it it-cuda" role="note">{_head(label, "Running on this machine")}'
        f"<p>{escape(line_of(here))}</p></div>",
        text,
        _record(label, "live", gpu=here.gpu, torch=here.torch),
    )


def provenance(label: Label, recording: Recording, run: Run) -> Display:
    """Return the lines above a replayed output: where, when and with what it was made."""
    here = run.machine
    commit = f" ({here.torch_commit[:12]})" if here.torch_commit else ""
    told = {
        "driver": here.driver, "CUDA": here.cuda, "torch": here.torch + commit,
        "Triton": here.triton, "cuDNN": here.cudnn, "Python": here.python, "at most": here.clocks,
        "power limit": here.power, "book": run.book_commit[:12],
    }  # fmt: skip
    facts = {"gpu": here.gpu, **{name: getattr(here, name) for name in _TOLD}}
    facts |= {"date": run.date, "book_commit": run.book_commit}
    first = f"{here.gpu}, {run.date[:10]}"
    rest = ", ".join(f"{name} {fact}" for name, fact in told.items() if fact)
    html = (
        f'<div class="it it-cuda" role="note">{_head(label, "Recorded on a GPU")}'
        f"<p><strong>{escape(first)}</strong> · {escape(rest)} · "
        f'<a href="{GUIDE}">run or record it yourself</a></p></div>'
    )
    return Display(
        html,
        f"%%cuda {label.heading}: recorded on {first}\n    {rest}",
        _record(label, "recorded", chapter=recording.chapter, **facts),
    )


def not_recorded(label: Label, lack: str = "") -> Display:
    """Return the box that stands where a GPU's output would."""
    return _box(label, f"not yet recorded. {lack or _NO_DEVICE}", "not recorded")


def not_at_hand(label: Label, lack: str = "") -> Display:
    """Return the box for a notebook that was taken away from the book and its recordings."""
    text = f"the book's recordings are not on this machine. {lack or _NO_DEVICE}"
    return _box(label, text, "not at hand")


def stale(label: Label, recording: Recording) -> Display:
    """Return the box that stands where an output of other code would."""
    text = "its recording was made from other code than you see here, so it is not shown."
    return _box(label, text, "stale", chapter=recording.chapter)


def _box(label: Label, text: str, record: str, **more: str) -> Display:
    html = (
        f'<p class="it it-absent" role="note">{_named(label)}: {escape(text)} '
        f'<a href="{GUIDE}">Run or record it</a></p>'
    )
    return Display(html, f"%%cuda {label.heading}: {text}", _record(label, record, **more))


def _named(label: Label) -> str:
    title = f" {escape(label.title)}" if label.title else ""
    return f"<code>%%cuda {escape(label.name)}</code>{title}"


def _head(label: Label, state: str) -> str:
    return (
        f'<p class="it-label"><span>{_named(label)}</span>'
        f'<span class="it-release">{escape(state)}</span></p>'
    )


def _record(label: Label, state: str, **more: str) -> dict[str, Any]:
    return {"kind": "cuda", "name": label.name, "title": label.title, "state": state, **more}


@cache
def _here() -> Machine | None:
    return machine.machine()


def _reached() -> cell_code.Reached:
    return cell_code.reached_in([Path(place or ".") for place in sys.path])


def _earlier(name: str) -> list[str]:
    """Return the cells that ran before this one first did, as they were typed."""
    from IPython import get_ipython

    shell = get_ipython()
    typed: list[str] = list(shell.history_manager.input_hist_raw) if shell else []
    for index, source in enumerate(typed):
        parts = cell_code.split(source)
        if parts and parts[0].split()[:1] == [name]:
            return typed[:index]
    return typed


def _execute(cell: str) -> None:
    """Run a cell's code in the user's namespace and show the value of its last expression."""
    from IPython import get_ipython

    shell = get_ipython()
    code = shell.transform_cell(cell)
    file = shell.compile.cache(code, shell.execution_count, raw_code=cell)
    tree = shell.transform_ast(ast.parse(code, file))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec", dont_inherit=True), shell.user_ns)
    if last is not None:
        shown = ast.Interactive([last])
        exec(compile(shown, file, "single", dont_inherit=True), shell.user_ns)
