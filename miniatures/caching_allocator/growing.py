"""The allocator's fourth step: segments that grow, as `expandable_segments:True` has them."""

from __future__ import annotations

from miniatures.caching_allocator.allocator import Block, Key, MiB, Segment
from miniatures.caching_allocator.tuning import Tuned


class Growing(Tuned):
    """An allocator whose segments are address space, to which memory is added page by page."""

    def _candidate(self, size: int, key: Key) -> Block | None:
        fits = [block for block in self.blocks(key) if block.free and block.size >= size]
        fits.sort(key=lambda block: (block.size, block.address))
        while len(fits) > 1 and _can_become(fits[1]) < _can_become(fits[0]):
            fits.pop(0)  # the end of what grows counts as large as it can become
        return fits[0] if fits else None

    def _memory(self, size: int, key: Key) -> Block | None:
        block = self._room_to_grow(size, key)
        while not block.mapped or block.size < size:
            row = block.segment.blocks
            new = row[row.index(block) + 1] if block.mapped else block
            missing = min(new.size, size - block.size * block.mapped)
            page = self._page(key)
            if not self._map(new, -(-missing // page) * page):
                return None
            block = new
        return block

    def _map(self, block: Block, size: int) -> bool:
        if self.reserved + size > self.capacity:
            return False
        _part(block, size)
        block.mapped, self.asked = True, self.asked + 1
        self._join(block)
        return True

    def _room_to_grow(self, size: int, key: Key) -> Block:
        for segment in (segment for segment in self.segments if segment.key == key):
            row = segment.blocks
            for at in (at for at, block in enumerate(row) if not block.mapped):
                first = at - (at > 0 and row[at - 1].free)
                room = 0
                for block in row[first:]:
                    if block.mapped and not block.free:
                        break
                    room += block.size
                if room >= size:
                    return row[first]
        page = self._page(key)
        space = -(-(self.capacity + self.capacity // 8) // page) * page
        segment = Segment(key, grows=True)
        segment.blocks.append(Block(self._end, space, segment, mapped=False))
        self.segments.append(segment)
        self._end += space
        return segment.blocks[0]

    def _page(self, key: Key) -> int:
        return 2 * MiB if key[1] else self.settings.large

    def _may_cut(self, block: Block, size: int) -> bool:
        return block.size - size >= 512

    def _release(self, segment: Segment) -> None:
        owner = segment.key[2]
        if self.users[owner] if owner else self.capturing:
            return
        page, row, before = self._page(segment.key), segment.blocks, self.returned
        base = row[0].address
        for block in [block for block in row if block.free]:
            first = -(-(block.address - base) // page) * page + base
            last = (block.address + block.size - base) // page * page + base
            if first < last:
                if first > block.address:
                    block = _part(block, first - block.address)
                _part(block, last - first)
                block.mapped, self.returned = False, self.returned + 1
                _join_space(block)
        if len(row) == 1 and self.returned > before:
            self.segments.remove(segment)


def _can_become(block: Block) -> int:
    row = block.segment.blocks
    after = row[row.index(block) + 1 :][:1]
    return block.size + sum(other.size for other in after if not other.mapped)


def _part(block: Block, size: int) -> Block:
    if block.size == size:
        return block
    rest = Block(block.address + size, block.size - size, block.segment, mapped=block.mapped)
    row = block.segment.blocks
    row.insert(row.index(block) + 1, rest)
    block.size = size
    return rest


def _join_space(block: Block) -> None:
    row = block.segment.blocks
    at = row.index(block)
    for other in (*row[at + 1 : at + 2], *row[max(at - 1, 0) : at]):
        if not other.mapped:
            block.address = min(block.address, other.address)
            block.size += other.size
            row.remove(other)
