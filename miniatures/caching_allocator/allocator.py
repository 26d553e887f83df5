"""The caching allocator again: memory is asked for once, rounded, kept, cut, joined, given back."""

from __future__ import annotations

from dataclasses import dataclass, field

MiB = 2**20
Key = tuple[int, bool, str]
"""Who may use a segment: a stream; requests of up to 1 MiB, or larger ones; whose private pool."""


@dataclass(eq=False)
class Segment:
    """A piece of memory that the device gave: its blocks, in the order of their addresses."""

    key: Key
    blocks: list[Block] = field(default_factory=list)
    grows: bool = False


@dataclass(eq=False)
class Block:
    """A part of a segment, in bytes: handed out, free, or still in use on another stream."""

    address: int
    size: int
    segment: Segment
    requested: int = 0
    allocated: bool = False
    mapped: bool = True  # False: address space without memory, at the end of what can grow
    uses: set[int] = field(default_factory=set)
    marks: int = 0
    since: int = 0

    @property
    def free(self) -> bool:
        """Tell whether the block may be handed out now."""
        return self.mapped and not (self.allocated or self.uses or self.marks)


def round_size(size: int, divisions: int = 0) -> int:
    """Return the bytes of a request's block: a multiple of 512, or of a part of a power of two."""
    if divisions > 1 and size > 512 * divisions:
        step = (1 << (size.bit_length() - 1)) // divisions
        return -(-size // step) * step
    return max(512, -(-size // 512) * 512)


def segment_size(size: int, large: int = 20 * MiB) -> int:
    """Return how many bytes are asked from the device for a block that nothing free can serve."""
    if size <= MiB:
        return 2 * MiB
    return large if size < 10 * MiB else -(-size // (2 * MiB)) * 2 * MiB


class Allocator:
    """The memory of a device that has `capacity` bytes, handed out as PyTorch does."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.segments = capacity, list[Segment]()
        self.asked = self.returned = self.retries = 0
        self._end = 2**40  # addresses are made up

    def malloc(self, requested: int, stream: int = 0) -> Block:
        """Hand out a block for a request in bytes. :raises MemoryError: none fits."""
        size, key = self._place(requested, stream)
        block = self._best_fit(size, key) or self._after_giving_back(size, key)
        self._cut(block, size)
        block.requested, block.allocated = requested, True
        return block

    def free(self, block: Block) -> None:
        """Take a block back; it can be handed out again at once."""
        block.allocated = False
        self._join(block)

    def empty_cache(self) -> None:
        """Give each segment back to the device that is one free block."""
        for segment in list(self.segments):
            self._release(segment)

    def blocks(self, key: Key | None = None) -> list[Block]:
        """Return all blocks with memory, or those of one pool and stream."""
        chosen = [segment for segment in self.segments if key in (None, segment.key)]
        return [block for segment in chosen for block in segment.blocks if block.mapped]

    @property
    def reserved(self) -> int:
        """The bytes that the device gave and did not get back."""
        return sum(block.size for block in self.blocks())

    def _place(self, requested: int, stream: int) -> tuple[int, Key]:
        size = round_size(requested)
        return size, (stream, size <= MiB, "")

    def _best_fit(self, size: int, key: Key) -> Block | None:
        fitting = [block for block in self.blocks(key) if block.free and block.size >= size]
        return min(fitting, key=lambda block: (block.size, block.address), default=None)

    def _after_giving_back(self, size: int, key: Key) -> Block:
        if (block := self._first_try(size, key)) is None and self._may_wait():
            self.empty_cache()
            self.retries += 1
            block = self._from_device(size, key)
        if block is None:
            raise MemoryError(size)
        return block

    def _first_try(self, size: int, key: Key) -> Block | None:
        return self._from_device(size, key)

    def _may_wait(self) -> bool:
        return True

    def _from_device(self, size: int, key: Key) -> Block | None:
        return self._new(segment_size(size), key)

    def _new(self, wanted: int, key: Key) -> Block | None:
        if self.reserved + wanted > self.capacity:
            return None
        self.segments.append(segment := Segment(key))
        segment.blocks.append(Block(self._end, wanted, segment))
        self.asked, self._end = self.asked + 1, self._end + wanted
        return segment.blocks[0]

    def _cut(self, block: Block, size: int) -> None:
        if self._may_cut(block, size):
            rest = Block(block.address + size, block.size - size, block.segment)
            block.segment.blocks.insert(block.segment.blocks.index(block) + 1, rest)
            block.size = size

    def _may_cut(self, block: Block, size: int) -> bool:
        return block.size - size >= 512 if block.segment.key[1] else block.size - size > MiB

    def _join(self, block: Block) -> None:
        row = block.segment.blocks
        at = row.index(block)
        for other in (*row[at + 1 : at + 2], *row[max(at - 1, 0) : at]):
            if other.free:
                block.address = min(block.address, other.address)
                block.size += other.size
                row.remove(other)

    def _release(self, segment: Segment) -> None:
        if len(segment.blocks) == 1 and segment.blocks[0].free:
            self._give_back(segment)

    def _give_back(self, segment: Segment) -> None:
        self.segments.remove(segment)
        self.returned += 1
