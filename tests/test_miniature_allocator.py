"""The allocator's miniature against the rules, and against PyTorch's readers of snapshots."""

from __future__ import annotations

import pytest

from insidetorch import private
from miniatures.caching_allocator import cases
from miniatures.caching_allocator.allocator import Allocator, Block, MiB
from miniatures.caching_allocator.cases_blocks import Node
from miniatures.caching_allocator.cases_rules import Device
from miniatures.caching_allocator.record_snapshot import device, recorded, snapshot, sums
from miniatures.caching_allocator.watch_settings import USES, constants, cuda_keys


@pytest.mark.parametrize("seed", range(5000, 5012))
def test_the_miniature_follows_the_rules(seed: int) -> None:
    assert cases.agrees(seed)


def differing(seeds: range) -> int:
    return sum(not cases.agrees(seed) for seed in seeds)


def test_a_rule_taken_away_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def left_only(self: Allocator, block: Block) -> None:
        row = block.segment.blocks
        at = row.index(block)
        if at and row[at - 1].free:
            block.address, block.size = row[at - 1].address, block.size + row[at - 1].size
            row.pop(at - 1)

    with monkeypatch.context() as patch:
        patch.setattr(Allocator, "_join", left_only)
        assert differing(range(12)) > 6

    def first_fit(self: Allocator, size: int, key: object) -> Block | None:
        return next((b for b in self.blocks(key) if b.free and b.size >= size), None)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Allocator, "_best_fit", first_fit)
        assert differing(range(12)) > 2
    assert differing(range(12)) == 0


def test_the_sums_that_are_counted_up_are_those_that_are_read_off() -> None:
    rules, gpu = Device(400 * MiB), device(400 * MiB)
    held: list[tuple[Node, Block]] = []
    for kind, number, _ in cases.random_program(3, 300):
        if kind == "malloc":
            held.append(
                (rules.malloc(number % (9 * MiB) + 1, 0), gpu.malloc(number % (9 * MiB) + 1))
            )
        elif kind == "free" and held:
            node, block = held.pop(number % len(held))
            rules.free(node)
            gpu.free(block)
        assert rules.inactive_split == sums(gpu).inactive_split


def test_pytorch_reads_the_snapshot() -> None:
    gpu, history = recorded(100 * MiB)
    block = gpu.malloc(5 * MiB)
    gpu.malloc(600)
    gpu.free(block)
    taken = snapshot(gpu, history.events)
    assert "total_reserved: 22.0MiB" in private.segment_map(taken)
    assert "cudaMalloc" in private.event_list(taken)


def test_the_table_of_settings_is_whole() -> None:
    hip = {key for key in cuda_keys() if "hip" in key}
    assert cuda_keys() - hip <= set(USES) | {
        "expandable_segments_reserve",
        "expandable_segments_reserve_by_class",
    }
    assert constants()["kSmallBuffer"] == 2 * MiB
