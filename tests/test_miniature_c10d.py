"""c10d in small against PyTorch's, and that nothing is left behind when a worker is killed."""

from __future__ import annotations

import socket
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from miniatures.c10d_and_elastic import cases, rendezvous, watch
from miniatures.c10d_and_elastic.ring import Ring
from miniatures.c10d_and_elastic.store import Client, Server
from miniatures.c10d_and_elastic.watch_agents import Job, failures, processes_with
from miniatures.ddp.watch_ranks import Ranks


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_members_and_ranks_are_torchelastics(seed: int) -> None:
    assert all(cases.meeting(seed).values())


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["call", "waiting", "ranks"])
def test_a_rule_taken_away_is_noticed(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = rendezvous.State.join

    def join(self: Any, node: str, least: int, most: int, call_over: bool) -> bool | None:
        if broken == "call":
            return real(self, node, least, most, False)
        if self.complete and node not in self.inside and len(self.inside) < most:
            return False  # nobody waits
        return real(self, node, least, most, call_over)

    if broken == "ranks":
        monkeypatch.setattr(cases, "first_ranks", lambda workers: dict.fromkeys(workers, (0, 0)))
    else:
        monkeypatch.setattr(rendezvous.State, "join", join)
    part = "ranks" if broken == "ranks" else "members"
    assert not all(cases.meeting(seed)[part] for seed in range(30))


def test_nodes_meet_at_a_store() -> None:
    server, found = Server(), dict[str, list[str]]()

    def node(name: str) -> None:
        store = Client(server.port)
        found[name] = rendezvous.meet(store, name, 3, 3)
        store.close()

    threads = [threading.Thread(target=node, args=(name,)) for name in ("c", "a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.close()
    assert found == {name: ["a", "b", "c"] for name in "abc"}


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_ring_sums(size: int) -> None:
    states = watch.ring_states([2**rank for rank in range(size)])
    assert states[-1] == size * [size * [2**size - 1]]


def test_a_rank_that_has_gone_is_noticed() -> None:
    server = Server()
    store, raised = Client(server.port), list[str]()

    def gone() -> None:
        other = Client(server.port)
        Ring(other, "ring", 1, 2).close()
        other.close()

    thread = threading.Thread(target=gone)
    thread.start()
    ring = Ring(store, "ring", 0, 2)
    thread.join()
    try:
        ring.all_reduce(torch.ones(4))
    except ConnectionError as error:
        raised.append(str(error))
    ring.close()
    store.close()
    server.close()
    assert raised


def test_the_report_of_failures_is_read() -> None:
    text = "[1]:\n  rank      : 0 (local_rank: 0)\n  exitcode  : -15 (pid: 1)  (SIGTERM)\n"
    assert failures(text + "  traceback : Signal 15\n") == [("0", "-15", "Signal 15")]


def listening() -> set[str]:
    """Return the inodes of sockets that this process and its children have open to listen."""
    own = {str(file.readlink()) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()}
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return {row.split()[9] for row in rows if row.split()[3] == "0A"} & {
        link[8:-1] for link in own if link.startswith("socket:[")
    }


@pytest.mark.slow
def test_the_ring_is_gloos_on_processes() -> None:
    server = Server()
    with Ranks(3) as ranks:
        found = ranks(cases.sums, server.port, list(range(1000, 1030)))
    server.close()
    assert all(all(case.values()) for one in found for case in one)


@pytest.mark.slow
def test_nothing_is_left_when_a_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = listening()
    script = 'note("begins")\nif rank: os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(60)\n'
    with Job(script) as job:
        job.start("--standalone", "--nproc-per-node=2", "--max-restarts=1")
        assert job.wait(limit=240) == 1
        assert {line["restart"] for line in job.log()} == {0, 1}
        assert processes_with(f"JOB_MARK={job.mark}") == []
        pids = {str(line["pid"]) for line in job.log()} | {str(job.agents["A"].pid)}
        port = job.log()[-1]["MASTER_PORT"]
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), 1)
    assert len(pids) == 5
    segments = [file.name for file in Path("/dev/shm").iterdir()]
    assert not [name for name in segments if pids & set(name.split("_"))]
    assert list(tmp_path.iterdir()) == []
    assert listening() == before


@pytest.mark.slow
def test_an_agent_that_is_killed_leaves_workers_and_closing_ends_them() -> None:
    with Job('note("begins")\ntime.sleep(600)\n') as job:
        job.start("--standalone", "--nproc-per-node=2")
        job.until(lambda log: len(log) == 2, 240)
        job.agents["A"].kill()
        job.agents["A"].wait()
        assert len(job.left()) == 2
    assert job.left() == []
