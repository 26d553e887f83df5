"""Running chapters: one kernel each, as many at a time as there are cores, the longest first."""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import ensure_async
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from insidetorch.book import opened
from insidetorch.book.project import Chapter, Limits, Project
from insidetorch.book.runs import Failure, Run, Watcher
from insidetorch.facts import cores
from insidetorch.processes import environment
from insidetorch.records import RECORD_MIME
from insidetorch.run import leftovers

_USDT = re.compile(r"^USDT:.*(?:\n|\Z)", re.MULTILINE)
TEXT = 1_000_000
"""How many characters of text a cell may show."""
_TOO_MUCH = (
    "the cell wrote more than 1 MB of text and was stopped; show a part of it, or what it comes to"
)
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class _Kernel(AsyncKernelManager):
    """Starts `insidetorch.run.kernel` in this Python, whatever kernels are installed."""

    @property
    def kernel_spec(self) -> KernelSpec:
        command = [sys.executable, "-m", "insidetorch.run.kernel", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Inside PyTorch", language="python")


def longest_first(
    chapters: Sequence[Chapter], seconds: Mapping[str, float | None]
) -> list[Chapter]:
    """Return the chapters in the order to start them: unknown ones, then by falling duration."""

    def rank(chapter: Chapter) -> tuple[float, int]:
        known = seconds.get(chapter.doc)
        return (float("inf") if known is None else known, len(chapter.code_cells))

    return sorted(chapters, key=rank, reverse=True)


def kernel_environment(project: Project, threads: int) -> dict[str, str]:
    """Return the environment of a kernel that may use `threads` threads."""
    env = environment(
        project.root,
        **dict.fromkeys(_THREADS, str(threads)),
        INSIDETORCH_BUILD="1",
        PYTHONHASHSEED="0",
        IPYTHONDIR=str(project.cache / "ipython"),
        TORCHINDUCTOR_CACHE_DIR=str(project.cache / "inductor"),
        TORCH_EXTENSIONS_DIR=str(project.cache / "extensions"),
        **{opened.BOOK: str(project.root)},
    )
    env.pop("PYTHONSTARTUP", None)
    return env


def execute(chapters: Sequence[Chapter], project: Project, workers: int, watcher: Watcher) -> None:
    """Run the chapters, in this order, `workers` at a time; `watcher` receives each run.

    A chapter that fails stops no other. Interrupted, it kills the kernels and raises
    `KeyboardInterrupt`; what `watcher` raises comes out as it is, the kernels killed too.
    """
    logging.getLogger("traitlets").setLevel(logging.CRITICAL)
    try:
        asyncio.run(_execute(chapters, project, workers, watcher))
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


async def _execute(
    chapters: Sequence[Chapter], project: Project, workers: int, watcher: Watcher
) -> None:
    workers = max(1, min(workers, len(chapters)))
    env = kernel_environment(project, threads=max(1, cores() // workers))
    for name in ("IPYTHONDIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR"):
        Path(env[name]).mkdir(parents=True, exist_ok=True)
    waiting = list(enumerate(chapters))
    slots, gpu = asyncio.Semaphore(workers), asyncio.Lock()

    # The socket's path must be short, and a checkout's may be long: so not below the root.
    with leftovers.short_folder(project) as sockets:

        async def work() -> None:
            while waiting:
                number, chapter = waiting.pop(0)
                connection = sockets / f"k{number}.json"
                turn = gpu if _needs_gpu(chapter) else nullcontext()
                async with _kernel(chapter, env, connection) as kernel, turn, slots:
                    watcher.started(chapter)
                    run = await _run(chapter, kernel, watcher)
                watcher.finished(run)

        async with asyncio.TaskGroup() as group:
            # One more than may run: its kernel starts meanwhile and waits for a slot.
            for _ in range(min(workers + 1, len(chapters))):
                group.create_task(work())


def _needs_gpu(chapter: Chapter) -> bool:
    return Path("/dev/nvidiactl").exists() and any(
        cell["source"].startswith("%%cuda") for cell in chapter.code_cells
    )


@dataclass(frozen=True)
class _Started:
    """A kernel that waits for cells, or why there is none."""

    client: _Client
    clock: _Clock
    seconds: float
    failure: Failure | None
    reads: Path


@dataclass
class _Clock:
    """Since when the cells of a chapter run."""

    limits: Limits
    begun: float = 0.0

    def left(self) -> float:
        """Return what is left of the chapter's time, in seconds; negative when it is up."""
        return self.limits.chapter - (time.monotonic() - self.begun)

    def for_cell(self, _: object = None) -> float:
        """Return how long the next cell may take, in seconds."""
        return max(0.1, min(self.limits.cell, self.left()))


@asynccontextmanager
async def _kernel(
    chapter: Chapter, env: Mapping[str, str], connection: Path
) -> AsyncIterator[_Started]:
    """Start the kernel of a chapter, and kill it at the end."""
    begun = time.monotonic()
    notebook = nbformat.from_dict(copy.deepcopy(chapter.notebook))  # type: ignore[no-untyped-call]
    manager = _Kernel(transport="ipc", connection_file=str(connection))
    clock = _Clock(chapter.limits)
    client = _Client(
        notebook,
        km=manager,
        timeout_func=clock.for_cell,
        iopub_timeout=60,
        raise_on_iopub_timeout=True,
        skip_cells_with_tag="",
        allow_errors=os.environ.get("INSIDETORCH_COLLECT") == "1",
    )
    client.log.setLevel(logging.CRITICAL)
    log, failure = connection.with_suffix(".log"), None
    reads = connection.with_suffix(".reads")
    try:
        try:
            with log.open("wb") as errors:
                await client.async_start_new_kernel(
                    cwd=str(chapter.path.parent),
                    env={
                        **env,
                        "INSIDETORCH_CHAPTER": chapter.path.stem,
                        leftovers.KERNEL: str(connection),
                        opened.LOG: str(reads),
                    },
                    stderr=errors,
                )
            await client.async_start_new_kernel_client()
        except RuntimeError as error:
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            message = f"the kernel did not start: {' '.join([str(error), *said])}"
            failure = _failure(chapter, 0, "NoKernel", message)
        yield _Started(client, clock, time.monotonic() - begun, failure, reads)
    finally:
        if client.kc is not None:
            client.kc.stop_channels()
        pid = getattr(manager.provisioner, "pid", None)
        known = leftovers.below(pid) if pid else []
        try:
            if manager.has_kernel:
                await manager.shutdown_kernel(now=True)
        finally:
            leftovers.end(str(connection), known)


class _Client(NotebookClient):
    """Takes no more text from a cell than a page can bear, and interrupts a cell with more."""

    text = 0
    """How many characters the cell has written so far."""

    def output(
        self,
        outs: list[nbformat.NotebookNode],
        msg: dict[str, Any],
        display_id: str | None,
        cell_index: int,
    ) -> nbformat.NotebookNode | None:
        before = self.text
        content = msg["content"]
        texts = [v for k, v in content.get("data", {}).items() if k.startswith("text/")]
        self.text += sum(len(str(text)) for text in [content.get("text", ""), *texts])
        if self.text <= TEXT:
            return super().output(outs, msg, display_id, cell_index)
        if before <= TEXT:
            self._interrupting = asyncio.ensure_future(_interrupt(self))
        return None


async def _interrupt(client: _Client) -> None:
    assert client.km is not None
    await ensure_async(client.km.interrupt_kernel())


async def _run(chapter: Chapter, started: _Started, watcher: Watcher) -> Run:
    client, clock, failure = started.client, started.clock, started.failure
    notebook = client.nb
    clock.begun = time.monotonic()
    number, spent = 0, []
    try:
        if failure is None:
            await _language(client, notebook)
        for index, cell in enumerate(notebook.cells if failure is None else ()):
            if cell.cell_type != "code":
                continue
            number += 1
            watcher.cell(chapter, number)
            client.text = 0
            start = time.monotonic()
            await client.async_execute_cell(cell, index, execution_count=number)
            spent.append(round(time.monotonic() - start, 3))
            if client.text > TEXT:
                break
    except CellExecutionError as error:
        failure = _failure(chapter, number, error.ename, error.evalue, notebook)
    except CellTimeoutError:
        message = _too_long(chapter.limits, whole=clock.left() <= 0.2)
        failure = _failure(chapter, number, "Timeout", message)
    except DeadKernelError:
        # nbclient says so of a cancelled task too.
        if (task := asyncio.current_task()) and task.cancelling():
            raise asyncio.CancelledError from None
        message = "the kernel died; the cell crashed the process or used up the memory"
        failure = _failure(chapter, number, "DeadKernel", message)
    if client.text > TEXT:
        failure = _failure(chapter, number, "TooMuch", _TOO_MUCH)
    clean_streams(notebook)
    seconds = started.seconds + time.monotonic() - clock.begun
    files = opened.read(started.reads)
    return Run(chapter, dict(notebook), round(seconds, 3), tuple(spent), failure, files)


async def _language(client: NotebookClient, notebook: nbformat.NotebookNode) -> None:
    assert client.kc is not None
    reply = await client.async_wait_for_reply(client.kc.kernel_info())
    if reply is not None:
        notebook.metadata["language_info"] = reply["content"]["language_info"]


def clean_streams(notebook: Mapping[str, Any]) -> None:
    """Remove, in place, the lines that the profiler's tracing probes leave on stderr."""
    for cell in notebook["cells"]:
        kept = []
        for output in cell.get("outputs", ()):
            if output["output_type"] == "stream" and output["name"] == "stderr":
                output["text"] = _USDT.sub("", output["text"])
                # A line may come in two pieces, its end alone.
                if not output["text"].strip():
                    continue
            kept.append(output)
        if "outputs" in cell:
            cell["outputs"] = kept


def _failure(
    chapter: Chapter,
    number: int,
    name: str,
    message: str,
    notebook: Mapping[str, Any] | None = None,
) -> Failure:
    if not number:
        return Failure(None, None, name, message)
    claim = None
    if notebook is not None and name == "ClaimFailed":
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        claim = _claim(code[number - 1].get("outputs", ()))
    return Failure(number, chapter.code_lines[number - 1], name, message, claim)


def _claim(outputs: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the sentence of the last record that did not hold."""
    for output in reversed(outputs):
        record = output.get("data", {}).get(RECORD_MIME, {})
        if record.get("held") is False:
            return str(record.get("text") or record.get("sentence") or "") or None
    return None


def _too_long(limits: Limits, whole: bool) -> str:
    if whole:
        return (
            f"the chapter ran longer than its limit of {limits.chapter:g} s and was "
            "stopped in this cell; shorten it, or raise `insidetorch: {chapter-seconds: …}` in "
            "its front matter"
        )
    return (
        f"the cell ran longer than its limit of {limits.cell:g} s and was stopped; mend it if it "
        "never ends, or raise `insidetorch: {cell-seconds: …}` in the chapter's front matter"
    )
