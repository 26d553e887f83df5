"""torchrun as a user starts it: on a script of a few lines, in a folder that is gone afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from insidetorch.processes import environment
from miniatures.c10d_and_elastic.watch import free_port

_HEAD = """
import json, os, signal, sys, time
from pathlib import Path
folder, env = Path(sys.argv[1]), os.environ
rank, tries = int(env["RANK"]), int(env["TORCHELASTIC_RESTART_COUNT"])
def note(what, **more):
    names = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "MASTER_PORT")
    line = {name: int(env[name]) for name in names} | {"what": what, "restart": tries} | more
    line |= {"at": time.monotonic(), "agent": sys.argv[2], "pid": os.getpid()}
    with open(folder / "log", "a") as log: log.write(json.dumps(line) + "\\n")
def load():
    return int((folder / "saved").read_text()) if (folder / "saved").exists() else 0
def save(step):
    (folder / "new").write_text(str(step))
    (folder / "new").rename(folder / "saved")  # whole, or not at all
def meet(step):
    time.sleep(0.1)  # the step's work
    (folder / f"{tries} {step} {rank}").touch()
    others = [folder / f"{tries} {step} {one}" for one in range(int(env["WORLD_SIZE"]))]
    while not all(other.exists() for other in others): time.sleep(0.05)
"""


def _sharing(share: bool) -> AbstractContextManager[object]:
    """Set for a while whether the ranks' store is the agent's."""
    return patch.dict(os.environ, TORCH_DISABLE_SHARE_RDZV_TCP_STORE=str(int(not share)))


def comes_late(share: bool) -> list[str]:
    """Let one node meet alone, and a second one come in the next round, on two threads.

    :param share: whether the agent's store is also that of the ranks, as by default.
    :returns: for each node what it raised in the second round, or "".
    """
    import torch.distributed as dist
    from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
    from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
        DynamicRendezvousHandler,
        RendezvousTimeout,
    )

    store = dist.HashStore()  # type: ignore[attr-defined]
    store.set_timeout(timedelta(seconds=4))

    def node() -> Any:
        backend = C10dRendezvousBackend(store, "job")
        wait = RendezvousTimeout(last_call=timedelta(seconds=0.2))
        return DynamicRendezvousHandler.from_backend(
            "job", store, backend, 1, 2, local_addr="127.0.0.1", timeout=wait
        )

    def again(number: int) -> None:
        try:
            nodes[number].next_rendezvous()
        except Exception as error:
            raised[number] = f"{type(error).__name__}: {error}"

    nodes, raised = [node(), node()], ["", ""]
    try:
        with _sharing(share):
            nodes[0].next_rendezvous()
            threads = [threading.Thread(target=again, args=(number,)) for number in (1, 0)]
            threads[0].start()
            while not nodes[0].num_nodes_waiting():
                time.sleep(0.1)
            threads[1].start()
            for thread in threads:
                thread.join()
    finally:
        for one in nodes:
            one.shutdown()
    return raised


def ports_of_rounds(share: bool) -> list[int]:
    """Let one node meet alone, twice, and return the port that its ranks would get each time.

    :param share: whether the agent's store is also that of the ranks, as by default.
    """
    import torch.distributed as dist
    from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
    from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler

    store = dist.HashStore()  # type: ignore[attr-defined]
    backend = C10dRendezvousBackend(store, "job")
    node = DynamicRendezvousHandler.from_backend(
        "job", store, backend, 1, 1, local_addr="127.0.0.1"
    )
    try:
        with _sharing(share):
            rounds = [node.next_rendezvous() for _ in range(2)]
        return [one.bootstrap_store_info.master_port for one in rounds]
    finally:
        node.shutdown()


class Job:
    """Agents of torchrun on this machine, and what their workers noted.

    :param script: a worker. Before it stand lines that define `rank`, `tries` (how often it was
        restarted), `folder`, `load` and `save` (of a step), `meet`, which waits at a step until
        all ranks are there, and `note`, which writes to the log.
    """

    def __init__(self, script: str) -> None:
        self._kept = TemporaryDirectory(prefix="job-")
        self.folder = Path(self._kept.name)
        (self.folder / "train.py").write_text(_HEAD + script)
        self.mark = uuid4().hex
        self.agents = dict[str, subprocess.Popen[str]]()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, *options: str, agent: str = "A", **settings: str) -> None:
        """Start an agent: ``torchrun <options> train.py``.

        :param settings: of its environment.
        """
        env = environment(
            TMPDIR=str(self.folder), JOB_MARK=self.mark, OMP_NUM_THREADS="1", **settings
        )
        for name in [one for one in env if one.startswith(("TORCHELASTIC_", "PET_"))]:
            del env[name]
        with (self.folder / f"said {agent}").open("w") as said:
            self.agents[agent] = subprocess.Popen(
                [sys.executable, "-m", "torch.distributed.run", *options,
                 "--monitor-interval", "0.1",
                 str(self.folder / "train.py"), str(self.folder), agent],
                stdout=said, stderr=subprocess.STDOUT, env=env, text=True,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def log(self) -> list[dict[str, Any]]:
        """Return what the workers noted so far, in order."""
        file = self.folder / "log"
        lines = file.read_text().splitlines() if file.exists() else []
        return sorted((json.loads(line) for line in lines), key=lambda line: line["at"])

    def until(self, true: Callable[[list[dict[str, Any]]], bool], limit: float = 60) -> None:
        """Wait until something is true of the log."""
        end = time.monotonic() + limit
        while not true(self.log()):
            if time.monotonic() > end:
                raise TimeoutError(f"the log has {self.log()}, the agents said {self.said()}")
            time.sleep(0.05)

    def wait(self, agent: str = "A", limit: float = 60) -> int:
        """Wait for an agent's end, and return its exit status."""
        return self.agents[agent].wait(limit)

    def said(self, agent: str = "A") -> str:
        """Return what an agent wrote to the terminal."""
        return (self.folder / f"said {agent}").read_text()

    def close(self) -> None:
        """End what is left of agents and workers, and remove the folder."""
        for process in self.agents.values():
            process.kill()
            process.wait()
        for pid in self.left():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 10
        while self.left() and time.monotonic() < end:
            time.sleep(0.02)
        self._kept.cleanup()

    def left(self) -> list[int]:
        """Return the processes of this job that still run."""
        return processes_with(f"JOB_MARK={self.mark}")


class Joining(Job):
    """A job for one or two machines; the first has begun, the second comes when it is told to."""

    def __init__(self, limit: float = 240) -> None:
        super().__init__(
            'note("begins")\n'
            'while not (folder / "stop").exists():\n'
            "    time.sleep(0.2)\n"
            '    note("works")\n'
            'note("ends")\n'
        )
        self.limit, self.port = limit, free_port()
        self._agent("A", 2)

    def _agent(self, name: str, workers: int) -> None:
        often = "last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=60"
        self.start(
            "--nnodes=1:2", "--max-restarts=0", "--local-addr=127.0.0.1", "--rdzv-id=job",
            "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{self.port}",
            f"--rdzv-conf={often},is_host={int(name == 'A')}", f"--nproc-per-node={workers}",
            agent=name, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1",
        )  # fmt: skip

    def second(self) -> tuple[list[int], list[dict[str, Any]]]:
        """Let an agent with one worker join, wait until all work, and end the job.

        :returns: the agents' exit statuses, and the log.
        """
        self.until(lambda log: len({line["pid"] for line in log}) == 2, self.limit)
        self._agent("B", 1)
        self.until(lambda log: len({line["pid"] for line in log}) == 5, self.limit)
        time.sleep(0.5)
        (self.folder / "stop").touch()
        return [self.wait(name, self.limit) for name in "AB"], self.log()


def spans(log: Sequence[dict[str, Any]]) -> list[tuple[int, int, int, int, str]]:
    """Return for each worker: rank, restarts before, first and last step, and its last word."""
    found = dict[int, list[dict[str, Any]]]()
    for line in log:
        found.setdefault(line["pid"], []).append(line)
    rows = [
        (own[0]["RANK"], own[0]["restart"], own[0]["step"],
         max(line.get("step") or 0 for line in own), own[-1]["what"])
        for own in found.values()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row[1], row[0]))


def processes_with(setting: str) -> list[int]:
    """Return the processes, other than this, whose environment has a setting."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if setting.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def failures(text: str) -> list[tuple[str, str, str]]:
    """Return rank, exit code and message of each failure in torchrun's report, in its order."""
    found, rank, code = [], "", ""
    for line in text.splitlines():
        name, _, value = (part.strip() for part in line.partition(":"))
        if name == "rank":
            rank = value.split()[0]
        elif name == "exitcode":
            code = value.split()[0]
        elif name == "traceback" and rank:
            found.append((rank, code, value))
    return found
