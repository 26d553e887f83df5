"""Placed tensors and a sharded layer in small, and that no process, socket or segment is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from insidetorch.private import sharding
from miniatures.ddp.watch_ranks import RankError, Ranks
from miniatures.fsdp_and_dtensor import cases, placed, watch


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [4, 3])
def test_programs_equal_dtensor(ranks: int) -> None:
    found = cases.compare_all(range(5000, 5010), ranks)
    assert set(found.values()) == {10}


@pytest.mark.slow
def test_a_rule_taken_away_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = [rule for rule in placed.MATMUL if rule != ("P", "S1", "S0")]
    monkeypatch.setitem(cases.OPS, "matmul", (torch.mm, fewer))
    found = cases.compare_all(range(30), 4)
    assert found["sent"] < 30
    assert found["value"] == 30


@pytest.mark.parametrize(("rows", "ranks"), [(6, 4), (7, 3), (2, 4), (8, 8)])
def test_parts_are_those_of_chunk(rows: int, ranks: int) -> None:
    value = torch.arange(float(rows)).view(rows, 1)
    parts = placed.place(value, "S0", ranks).parts
    chunks = list(value.chunk(ranks))
    assert [len(part) for part in parts] == [
        len(chunk) for chunk in chunks + [value[:0]] * (ranks - len(chunks))
    ]
    assert torch.equal(torch.cat(parts), value)


@pytest.mark.parametrize("start", ["S0", "S1", "R", "P"])
@pytest.mark.parametrize("end", ["S0", "S1", "R"])
def test_a_change_of_placement_keeps_the_value(start: str, end: str) -> None:
    value = torch.randn(4, 4, dtype=torch.double)
    moved = placed.place(value, start, 4).to(end)
    assert torch.allclose(moved.full(), value)
    assert [name for name in [placed.collective(start, end)] if name] == moved.sent


def test_nobody_may_ask_for_an_unfinished_sum() -> None:
    with pytest.raises(ValueError, match="not finished"):
        placed.place(torch.ones(4, 4), "S0", 4).to("P")


@pytest.mark.slow
def test_the_layer_equals_fully_shard_and_the_whole_layer() -> None:
    with Ranks(2) as ranks:
        for found in ranks(cases.compare_layers, range(900, 903)):
            assert set(found.values()) == {3}


@pytest.mark.slow
def test_a_step_gathers_and_frees_each_layer_twice() -> None:
    with Ranks(2) as ranks:
        for moments in ranks(watch.record_step, 3, 8, 2):
            events = [(moment.what, moment.who) for moment in moments]
            assert events.count(("has", "layer 0")) == events.count(("frees", "layer 0")) == 2
            assert events.count(("has", "root")) == 1
            assert not any(held["gathered"] for held in moments[-1].held.values())


def test_the_watched_methods_are_put_back() -> None:
    before = [name.get() for name in sharding._WATCHED.values()]
    with pytest.raises(KeyError), sharding.watch_groups(lambda what, who: None):
        raise KeyError
    assert [name.get() for name in sharding._WATCHED.values()] == before


def _left() -> dict[str, set[Any]]:
    """Return this user's processes that are ours, this process's sockets, and shared segments."""
    sockets = set()
    for handle in Path("/proc/self/fd").iterdir():
        try:
            target = str(handle.readlink())
        except OSError:
            continue
        if target.startswith("socket:"):
            sockets.add(target)
    children = {
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _parent(entry) == os.getpid()
    }
    return {"processes": children, "sockets": sockets}


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _dies(rank: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh

    model = watch.sharded(watch.stack(2, 8), init_device_mesh("cpu", (2,)))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    model(torch.ones(2, 8)).sum().backward()


def _lives(rank: int) -> int:
    from torch.distributed.device_mesh import init_device_mesh

    model = watch.sharded(watch.stack(2, 8), init_device_mesh("cpu", (2,)))
    model(torch.ones(2, 8)).sum().backward()
    return rank


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts by /proc")
@pytest.mark.parametrize("killed", [False, True])
def test_no_process_socket_or_segment_is_left(killed: bool) -> None:
    before, ranks = _left(), Ranks(2)
    segments: set[str] = set()
    with ranks:
        assert ranks(_lives) == [0, 1]
        pids = [process.pid for process in ranks.processes]
        folder = Path(ranks.folder.name)  # type: ignore[union-attr]
        if killed:
            with pytest.raises(RankError):
                ranks(_dies)
        if Path("/dev/shm").exists():
            segments = {
                each.name
                for each in Path("/dev/shm").iterdir()
                if any(f"_{pid}_" in each.name or each.name.endswith(f"_{pid}") for pid in pids)
            }
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not folder.exists()
    after = _left()
    assert after["processes"] <= before["processes"]
    assert after["sockets"] <= before["sockets"]
    assert not any((Path("/dev/shm") / name).exists() for name in segments)
