"""Ends passes in every way that threads ask about, in a process of its own, and counts the rest."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from insidetorch.errors import BookError
from insidetorch.processes import environment, last_line, run
from miniatures.data_and_randomness.watch import Broken, Stream, left_behind


def _passes() -> Iterator[tuple[str, Callable[[], object]]]:
    def loader(data: Any, **options: Any) -> DataLoader[Any]:
        return DataLoader(data, batch_size=2, num_workers=2, **options)

    def stopped() -> None:
        for _ in loader(Broken(40)):
            break

    def lasting() -> None:
        kept = loader(Broken(), persistent_workers=True)
        list(kept)
        list(kept)

    yield "a whole pass", lambda: list(loader(Broken()))
    yield "a pass left in the middle", stopped
    yield "an item that raises", lambda: list(loader(Broken(raises=5)))
    yield "a worker that is killed", lambda: list(loader(Broken(kills=5)))
    yield "persistent workers, dropped", lasting
    yield "a stream", lambda: list(loader(Stream(8)))


def _main() -> None:
    before, rows = left_behind(), []
    for name, call in _passes():
        said = ""
        try:
            call()
        except (KeyError, RuntimeError) as error:
            said = f"{type(error).__name__}: {error}"
            traceback.clear_frames(error.__traceback__)
        after = left_behind()
        own = list(Path("/dev/shm").glob(f"torch_{os.getpid()}_*"))
        rows.append(
            {
                "name": name,
                "said": said,
                "files": len(own),
                "folders": len(list(Path(tempfile.gettempdir()).iterdir())),
                **{kind: after[kind] - before[kind] for kind in after},
            }
        )
    print(json.dumps(rows))


def ends() -> list[dict[str, Any]]:
    """Run the passes in a process of its own; return for each what is left and what it said.

    :return: rows with `name`, `said`, and how many `processes`, `threads`, `sockets`, `segments`
        of shared memory, `files` below /dev/shm and `folders` of temporary files are left.
    :raises BookError: the process failed.
    """
    with tempfile.TemporaryDirectory(prefix="it-data-") as folder:
        code = "from miniatures.data_and_randomness.watch_ends import _main; _main()"
        command = [sys.executable, "-W", "ignore", "-c", code]
        done = run(command, env=environment(TMPDIR=folder))
    if done.returncode:
        raise BookError(f"the passes could not be ended: {last_line(done.stderr)}")
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows
