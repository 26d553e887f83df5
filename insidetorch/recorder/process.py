"""One worker process of the recorder: what it tells, how long it may be silent, and its end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import insidetorch
from insidetorch.errors import BookError

LIMIT = 300.0
"""Seconds that a cell may take."""
_START = 600.0
"""Seconds until the first cell: torch is loaded, on some boxes from a slow disk."""


def events(
    job: Mapping[str, Any], root: Path, cwd: Path, limit: float = LIMIT
) -> Iterator[dict[str, Any]]:
    """Run a job in a process of its own and yield what it tells; last, how it died if it did.

    :param job: as `record_worker.run_chapter` takes it.
    :param root: the folder with ``miniatures/``.
    :param cwd: the folder to run in; it is made.
    :param limit: seconds that a cell may take before the process is ended.
    :raises BookError: the process ended before its first cell.
    """
    cwd.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="it-") as scratch:
        path, log = Path(scratch) / "job.json", Path(scratch) / "log"
        path.write_text(json.dumps(job), encoding="utf-8")
        process, told = _start(path, log, root, cwd)
        cell, rest, problem = "", b"", ""
        try:
            while not problem:
                if not select.select([told], [], [], limit if cell else _START)[0]:
                    problem = f"it did not end within {limit if cell else _START:g} s"
                elif chunk := os.read(told, 2**16):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        event = json.loads(line)
                        if event["event"] == "end":
                            return
                        cell = event["cell"]
                        yield event
                else:
                    problem = f"the process ended with {process.wait()} in {cell or 'its start'}"
                    said = log.read_text(encoding="utf-8", errors="replace").strip()
                    problem = ": ".join([problem, *said.splitlines()[-1:]])
        finally:
            os.close(told)
            # The session is the worker's own: what its cells started ends with it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not cell:
            raise BookError(f"the process that records {job['chapter']} did not start ({problem}).")
        yield {"event": "died", "cell": cell, "problem": problem}


def _start(job: Path, log: Path, root: Path, cwd: Path) -> tuple[subprocess.Popen[bytes], int]:
    code = [str(root), str(Path(insidetorch.__file__).parent.parent)]
    inherited = os.environ.get("PYTHONPATH")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*code, *([inherited] if inherited else [])]),
        "PYTHONHASHSEED": "0",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "IPYTHONDIR": str(job.parent),
        # Inductor's pool of compiling processes does not always stop.
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    ours, theirs = os.pipe()
    worker = [sys.executable, "-m", "insidetorch.recorder.worker", str(job), str(theirs)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*worker, str(os.getpid())], cwd=cwd, env=environment, pass_fds=[theirs],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    os.close(theirs)
    return process, ours


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Let TERM end the ``with`` block as Ctrl-C does, so that what is done is kept.

    :raises KeyboardInterrupt: TERM arrived.
    """

    def end(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
