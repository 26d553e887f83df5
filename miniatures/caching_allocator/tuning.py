"""The allocator's third step, settings: blocks too large to cut, blocks too old, and a limit."""

from __future__ import annotations

from dataclasses import dataclass

from miniatures.caching_allocator.allocator import Block, Key, MiB, round_size, segment_size
from miniatures.caching_allocator.sharing import Shared


@dataclass(frozen=True)
class Settings:
    """What can be set, in bytes. `limit` is the process's own, and None is no limit."""

    max_split: int = 2**63
    rounding: int = 20 * MiB
    large: int = 20 * MiB
    divisions: int = 0
    collect_above: float = 0.0
    limit: int | None = None


class Tuned(Shared):
    """An allocator with settings; without any it is `Shared`."""

    def __init__(self, capacity: int, settings: Settings | None = None) -> None:
        super().__init__(capacity)
        self.settings, self.searches = settings or Settings(), 0

    def _place(self, requested: int, stream: int) -> tuple[int, Key]:
        size = round_size(requested, self.settings.divisions)
        return size, (stream, size <= MiB, self.capturing)

    def _best_fit(self, size: int, key: Key) -> Block | None:
        self.searches += key[1:] == (False, "")
        block, most = self._candidate(size, key), self.settings.max_split
        if block is None or size < most <= block.size:
            return None  # what is too large to cut serves no smaller request
        return None if size >= most and block.size >= size + self.settings.rounding else block

    def _candidate(self, size: int, key: Key) -> Block | None:
        return super()._best_fit(size, key)

    def _first_try(self, size: int, key: Key) -> Block | None:
        self._collect()
        block = super()._first_try(size, key)
        if block is None and self._release_oversize(max(size, self.settings.max_split), key):
            block = super()._first_try(size, key)
        return block

    def _from_device(self, size: int, key: Key) -> Block | None:
        wanted = segment_size(size, self.settings.large)
        if self.settings.limit is not None and self.reserved + wanted > self.settings.limit:
            return None
        return self._memory(size, key)

    def _memory(self, size: int, key: Key) -> Block | None:
        return self._new(segment_size(size, self.settings.large), key)

    def _may_cut(self, block: Block, size: int) -> bool:
        small = block.segment.key[1]
        return super()._may_cut(block, size) and (small or size < self.settings.max_split)

    def _cut(self, block: Block, size: int) -> None:
        row = block.segment.blocks
        before = len(row)
        super()._cut(block, size)
        if len(row) > before:
            row[row.index(block) + 1].since = self.searches

    def _join(self, block: Block) -> None:
        super()._join(block)
        block.since = self.searches

    def _collect(self) -> None:
        if not self.settings.collect_above or self.settings.limit is None:
            return
        target = self.reserved - int(self.settings.collect_above * self.settings.limit)
        whole = [s.blocks[0] for s in self.segments if len(s.blocks) == 1]
        old = [b for b in whole if b.free and b.segment.key[1:] == (False, "")]
        while target > 0 and old:
            mean = sum(self.searches - block.since for block in old) / len(old)
            for block in [b for b in old if self.searches - b.since >= mean]:
                old.remove(block)
                target -= block.size
                self._give_back(block.segment)

    def _release_oversize(self, wanted: int, key: Key) -> bool:
        large = [b for b in self.blocks(key) if b.free and b.size >= self.settings.max_split]
        large = [block for block in large if not block.segment.grows]
        large.sort(key=lambda block: (block.size, block.address))
        enough = [block for block in large if block.size >= wanted][:1]
        total = 0
        for block in enough or reversed(large):
            if total < wanted:
                total += block.size
                self._give_back(block.segment)
        return total >= wanted
