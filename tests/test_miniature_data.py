"""The small generators and the small loader give PyTorch's numbers; nothing is left behind."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from miniatures.data_and_randomness import cases, generators
from miniatures.data_and_randomness.cases import loader_case, philox_cases, same_numbers
from miniatures.data_and_randomness.generators import MersenneTwister, Philox
from miniatures.data_and_randomness.loader import Loader
from miniatures.data_and_randomness.watch import error_of, left_behind, recorded_pass
from miniatures.data_and_randomness.watch_ends import ends


def test_the_twister_gives_pytorchs_numbers_and_state() -> None:
    """On a few programs: the chapter compares two hundred."""
    assert [same_numbers(seed) for seed in range(7000, 7010)] == [None] * 10


def test_a_rule_taken_away_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generators, "SHIFT", 396)
    assert same_numbers(7000) is not None


def test_a_spare_normal_is_kept() -> None:
    torch.manual_seed(5)
    theirs = [torch.randn(1, dtype=torch.double).item() for _ in range(5)]
    rng = MersenneTwister(5)
    assert [rng.normal() for _ in range(5)] == pytest.approx(theirs, abs=1e-14)


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_philox_gives_the_headers_numbers() -> None:
    few = philox_cases(220)[200:]
    assert cases.philox_of_header(few) == cases.philox_of_miniature(few)


def test_philox_counts_over_its_edge() -> None:
    assert Philox(1, 2**64 - 1, 2**64 - 1).counter == 2**128 - 1
    engine = Philox(1, 2**64 - 1, 2**64 - 1)
    engine.four()
    assert engine.four() == Philox(1).four()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_the_small_loader_gives_pytorchs_batches() -> None:
    for seed in range(7000, 7012):
        case = loader_case(seed, workers=seed % 3)
        assert case.ours() == case.theirs(), case


@pytest.mark.slow
def test_the_small_loader_ends_its_workers_and_passes_errors_on() -> None:
    before = left_behind()

    def item(place: int, _: MersenneTwister) -> int:
        return 1 // (place - 5)

    given = []
    with pytest.raises(ZeroDivisionError):
        for batch in Loader(item, 9, MersenneTwister(0), size=2, workers=2):
            given.append(batch)
    assert len(given) == 2
    for _ in Loader(lambda place, _: place, 9, MersenneTwister(0), workers=3):
        break
    assert left_behind() == before


@pytest.mark.slow
def test_nothing_is_left_of_any_pass() -> None:
    """Processes, threads, sockets, segments and files, also when a worker is killed."""
    rows = ends()
    assert len(rows) == 6
    for row in rows:
        kinds = ("processes", "threads", "sockets", "segments", "files")
        assert {kind: row[kind] for kind in kinds} == dict.fromkeys(kinds, 0), row
    said = {row["name"]: row["said"] for row in rows}
    assert "exited unexpectedly" in said["a worker that is killed"]
    assert "Caught KeyError in DataLoader worker process" in said["an item that raises"]


@pytest.mark.slow
def test_a_recorded_pass_keeps_what_came_early() -> None:
    states = recorded_pass()
    assert states[0].asked == [[0, 2], [1, 3]]
    assert states[2].early == [1, 3]
    assert states[-1].given == list(range(6))


def test_the_text_of_an_error_keeps_nothing_of_its_frames() -> None:
    class Thing:
        pass

    held = []

    def fails() -> None:
        thing = Thing()
        held.append(weakref.ref(thing))
        try:
            raise ValueError("no")
        except ValueError as error:
            circle = error
            raise circle from None

    gc.disable()
    try:
        assert error_of(fails) == "no"
        assert held[0]() is None
    finally:
        gc.enable()
    assert error_of(lambda: None) == ""
