"""What the rules of `CUDACachingAllocator.cpp` work on, as its structs have it."""

from __future__ import annotations

from bisect import insort


class Node:
    """A block with pointers to its neighbours, as the struct has them."""

    def __init__(self, stream: int, size: int, pool: Pool, ptr: int) -> None:
        self.stream, self.size, self.pool, self.ptr = stream, size, pool, ptr
        self.requested = self.events = self.gc_base = 0
        self.allocated, self.mapped = False, True
        self.uses: set[int] = set()
        self.prev: Node | None = None
        self.next: Node | None = None
        self.arena: Arena | None = None

    def order(self) -> tuple[int, int, int]:
        """What a pool's set of free blocks is sorted by."""
        return (self.stream, self.size, self.ptr)


class Pool:
    """Free blocks by stream, size and address; pages without memory by stream and address."""

    def __init__(self, small: bool, owner: str) -> None:
        self.small, self.owner, self.calls = small, owner, 0
        self.blocks: list[Node] = []
        self.unmapped: list[Node] = []

    def insert(self, node: Node) -> None:
        """Put a block among the free ones, and note when."""
        node.gc_base = self.calls
        insort(self.blocks, node, key=Node.order)


class Arena:
    """The address space of an expandable segment, and which of its pages have memory."""

    def __init__(self, base: int, page: int, pages: int) -> None:
        self.base, self.page, self.size = base, page, page * pages
        self.pages = [False] * pages
