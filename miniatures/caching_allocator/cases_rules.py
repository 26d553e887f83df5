"""The rules of `CUDACachingAllocator.cpp` once more, as it has them: linked blocks, sorted sets.

Nothing is shared with the miniature. Where this file and the miniature agree on random programs,
both read the rules in the same way; whether a device agrees is for a recording to say.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from miniatures.caching_allocator.cases_blocks import Arena, Node, Pool

MB = 1 << 20
MIN_BLOCK, SMALL_SIZE, SMALL_BUFFER = 512, MB, 2 * MB
MIN_LARGE, ROUND_LARGE, NO_LIMIT = 10 * MB, 2 * MB, 1 << 63


class Device:
    """`DeviceCachingAllocator`, function by function.

    :param total: bytes of the device. The other names are those of the settings, in bytes.
    """

    def __init__(
        self,
        total: int,
        *,
        max_split: int = NO_LIMIT,
        rounding: int = 20 * MB,
        large: int = 20 * MB,
        divisions: int = 0,
        collect_above: float = 0.0,
        limit: int | None = None,
        expandable: bool = False,
    ) -> None:
        self.total, self.max_split, self.rounding, self.large = total, max_split, rounding, large
        self.divisions, self.collect_above, self.limit = divisions, collect_above, limit
        self.expandable, self.reserved, self.frontier = expandable, 0, 1 << 40
        self.pools = {"": (Pool(True, ""), Pool(False, ""))}
        self.use_count: dict[str, int] = {}
        self.underway = ""
        self.active: list[Node] = []
        self.events: dict[int, list[list[object]]] = {}
        self.deferred: list[Node] = []
        self.graph_uses: dict[Node, set[int]] = {}
        self.retries = 0
        self.inactive_split = 0

    def malloc(self, orig: int, stream: int) -> Node:
        """Return a block. :raises MemoryError: the device has none."""
        if not self.underway:
            self.process_events()
        size = self.round_size(orig)
        pool = self.pools[self.underway][0 if size <= SMALL_SIZE else 1]
        alloc = self.allocation_size(size)
        node = self.get_free_block(pool, stream, size)
        if node is None:
            if self.limit is not None and self.collect_above > 0:
                self.garbage_collect()
            node = self.alloc_block(pool, stream, size, alloc)
            if node is None and self.release_available(pool, stream, size):
                node = self.alloc_block(pool, stream, size, alloc)
            if node is None and not self.underway:
                self.release_cached()
                self.retries += 1
                node = self.alloc_block(pool, stream, size, alloc)
        if node is None:
            raise MemoryError(alloc)
        return self.found(node, pool, orig, size)

    def round_size(self, size: int) -> int:
        """Return the size of the block."""
        if size < MIN_BLOCK:
            return MIN_BLOCK
        if self.divisions > 1 and size > MIN_BLOCK * self.divisions:
            if size & (size - 1) == 0:
                return size
            floor = 1
            while floor * 2 <= size:
                floor *= 2
            part = floor >> (self.divisions.bit_length() - 1)
            if part == 0:
                return floor << 1
            down = size & ~(part - 1)
            return size if down == size else down + part
        return MIN_BLOCK * ((size + MIN_BLOCK - 1) // MIN_BLOCK)

    def allocation_size(self, size: int) -> int:
        """Return what is asked from the device."""
        if size <= SMALL_SIZE:
            return SMALL_BUFFER
        if size < MIN_LARGE:
            return self.large
        return ROUND_LARGE * ((size + ROUND_LARGE - 1) // ROUND_LARGE)

    def get_free_block(self, pool: Pool, stream: int, size: int) -> Node | None:
        """Take the smallest block that fits out of the pool, unless it is oversize."""
        if self.limit is not None and self.collect_above > 0:
            pool.calls += 1
        at = bisect_left(pool.blocks, (stream, size, 0), key=Node.order)
        if at == len(pool.blocks) or pool.blocks[at].stream != stream:
            return None
        if pool.blocks[at].arena is not None:

            def grown(node: Node) -> int:
                after = node.next
                return node.size + (after.size if after and not after.mapped else 0)

            while (
                at + 1 < len(pool.blocks)
                and pool.blocks[at + 1].stream == stream
                and grown(pool.blocks[at + 1]) < grown(pool.blocks[at])
            ):
                at += 1
        node = pool.blocks[at]
        if size < self.max_split <= node.size:
            return None
        if size >= self.max_split and node.size >= size + self.rounding:
            return None
        return pool.blocks.pop(at)

    def found(self, node: Node, pool: Pool, orig: int, size: int) -> Node:
        """Cut what is too much off a block, and count."""
        left = node.size - size
        if pool.small or self.expandable:
            split = left >= MIN_BLOCK
        else:
            split = size < self.max_split and left > SMALL_SIZE
        was_split = node.prev is not None or node.next is not None
        if split:
            rest, node = node, Node(node.stream, size, pool, node.ptr)
            node.arena, node.prev, node.next = rest.arena, rest.prev, rest
            if node.prev:
                node.prev.next = node
            rest.prev, rest.ptr, rest.size = node, rest.ptr + size, rest.size - size
            pool.insert(rest)
            if node.arena is None:
                self.inactive_split += -node.size if was_split else rest.size
        elif was_split and node.arena is None:
            self.inactive_split -= node.size
        node.allocated, node.requested = True, orig
        self.active.append(node)
        return node

    def free(self, node: Node) -> None:
        """Take a block back, now or when other streams are through with it."""
        node.allocated = False
        if not node.uses:
            self.free_block(node)
        elif self.underway:
            self.deferred.append(node)
        else:
            self.insert_events(node)

    def record_stream(self, node: Node, stream: int) -> None:
        """Note a use on another stream."""
        if stream == node.stream:
            return
        node.uses.add(stream)
        if self.underway:
            self.graph_uses.setdefault(node, set()).add(stream)

    def insert_events(self, node: Node) -> None:
        """Put an event behind each stream's work."""
        for stream in node.uses:
            node.events += 1
            self.events.setdefault(stream, []).append([False, node])
        node.uses = set()

    def insert_deferred(self) -> None:
        """Do what had to wait for the end of a capture."""
        for node in self.deferred:
            if node in self.graph_uses:
                node.uses -= self.graph_uses.pop(node)
            self.insert_events(node)
            if node.events == 0:
                self.free_block(node)
        self.deferred = []

    def process_events(self) -> None:
        """Free what has no event before it any more."""
        self.insert_deferred()
        for queue in self.events.values():
            while queue and queue[0][0]:
                self.pass_one(queue)

    def synchronize(self) -> None:
        """Wait for all events."""
        self.insert_deferred()
        for queue in self.events.values():
            while queue:
                self.pass_one(queue)

    def pass_one(self, queue: list[list[object]]) -> None:
        """Take the first event off a queue."""
        _, node = queue.pop(0)
        assert isinstance(node, Node)
        node.events -= 1
        if node.events == 0:
            self.free_block(node)

    def finish(self, stream: int) -> None:
        """Let the device come to the end of what is queued on a stream."""
        for event in self.events.get(stream, []):
            event[0] = True

    def free_block(self, node: Node) -> None:
        """Join a block with its free neighbours, and put it into its pool."""
        blocks = size = 0
        for other in (node.prev, node.next):
            subsumed = self.merge(node, other)
            blocks -= subsumed > 0
            size -= subsumed
        self.active.remove(node)
        node.pool.insert(node)
        if node.prev or node.next:
            blocks, size = blocks + 1, size + node.size
        if node.arena is None:
            self.inactive_split += size

    def merge(self, dst: Node, src: Node | None) -> int:
        """Let a block take over a neighbour; return the bytes."""
        if not src or src.allocated or src.events or src.uses or dst.mapped != src.mapped:
            return 0
        if dst.prev is src:
            dst.ptr, dst.prev = src.ptr, src.prev
            if dst.prev:
                dst.prev.next = dst
        else:
            dst.next = src.next
            if dst.next:
                dst.next.prev = dst
        dst.size += src.size
        (src.pool.blocks if src.mapped else src.pool.unmapped).remove(src)
        return src.size

    def alloc_block(self, pool: Pool, stream: int, size: int, alloc: int) -> Node | None:
        """Ask the device."""
        if self.limit is not None and self.reserved + alloc > self.limit:
            return None
        if self.expandable:
            return self.try_expandable(pool, stream, size)
        if self.reserved + alloc > self.total:
            return None
        self.reserved += alloc
        node = Node(stream, alloc, pool, self.frontier)
        self.frontier += alloc
        return node

    def try_expandable(self, pool: Pool, stream: int, size: int) -> Node | None:
        """Find address space, and put memory behind it."""
        node = self.find_expandable(pool, stream, size)
        if not node.mapped and not self.map(node, min(node.size, size)):
            return None
        while node.size < size:
            after = node.next
            assert after is not None
            if not self.map(after, min(size - node.size, after.size)):
                return None
            node = after
        pool.blocks.remove(node)
        return node

    def find_expandable(self, pool: Pool, stream: int, size: int) -> Node:
        """Return the lowest free address with room behind it."""

        def usable(node: Node | None) -> bool:
            return node is not None and not (node.allocated or node.events or node.uses)

        for node in [node for node in pool.unmapped if node.stream == stream]:
            first = node.prev if node.prev is not None and usable(node.prev) else node
            room, walk = 0, first
            while room < size and usable(walk):
                room += walk.size
                walk = walk.next  # type: ignore[assignment]
            if room >= size:
                return first
        page = SMALL_BUFFER if pool.small else self.large
        pages = (self.total + self.total // 8 + page - 1) // page
        made = Node(stream, page * pages, pool, self.frontier)
        made.arena, made.mapped = Arena(self.frontier, page, pages), False
        self.frontier += page * pages
        insort(pool.unmapped, made, key=lambda n: (n.stream, n.ptr))
        return made

    def map(self, node: Node, size: int) -> bool:
        """Put memory behind the beginning of a block, in whole pages."""
        arena = node.arena
        assert arena is not None
        begin = (node.ptr - arena.base) // arena.page
        end = -(-(node.ptr + size - arena.base) // arena.page)
        mapped = (end - begin) * arena.page
        if self.reserved + mapped > self.total:
            return False
        assert not any(arena.pages[begin:end])
        arena.pages[begin:end] = [True] * (end - begin)
        node.pool.unmapped.remove(node)
        node.mapped = True
        if mapped < node.size:
            rest = Node(node.stream, node.size - mapped, node.pool, node.ptr + mapped)
            rest.mapped, rest.arena = False, arena
            rest.prev, rest.next = node, node.next
            if rest.next:
                rest.next.prev = rest
            node.next, node.size = rest, mapped
            insort(node.pool.unmapped, rest, key=lambda n: (n.stream, n.ptr))
        self.merge(node, node.prev)
        self.merge(node, node.next)
        node.pool.insert(node)
        self.reserved += mapped
        return True

    def unmap(self, node: Node) -> None:
        """Take the memory away behind the whole pages of a free block."""
        arena = node.arena
        assert arena is not None
        begin = -(-(node.ptr - arena.base) // arena.page)
        end = (node.ptr + node.size - arena.base) // arena.page
        if begin >= end:
            return
        arena.pages[begin:end] = [False] * (end - begin)
        node.pool.blocks.remove(node)
        start, size = arena.base + begin * arena.page, (end - begin) * arena.page
        for ptr, length, before in (
            (node.ptr, start - node.ptr, True),
            (start + size, node.ptr + node.size - start - size, False),
        ):
            if length:
                part = Node(node.stream, length, node.pool, ptr)
                part.arena = arena
                part.prev, part.next = (node.prev, node) if before else (node, node.next)
                if part.prev:
                    part.prev.next = part
                if part.next:
                    part.next.prev = part
                node.pool.insert(part)
        node.ptr, node.size, node.mapped = start, size, False
        self.merge(node, node.prev)
        self.merge(node, node.next)
        insort(node.pool.unmapped, node, key=lambda n: (n.stream, n.ptr))
        self.reserved -= size

    def release_available(self, pool: Pool, stream: int, size: int) -> bool:
        """Give back one oversize block that is large enough, or several smaller ones."""
        if self.max_split == NO_LIMIT:
            return False
        wanted = max(size, self.max_split)
        at = bisect_left(pool.blocks, (stream, wanted, 0), key=Node.order)
        if at < len(pool.blocks):
            node = pool.blocks[at]
            if node.stream == stream and node.arena is None:
                self.release(node)
                return True
        if at == 0:
            return False
        total, at = 0, at - 1
        while total < wanted and at >= 0:
            node = pool.blocks[at]
            if node.size < self.max_split or node.stream != stream:
                break
            if node.arena is None:
                total += node.size
                self.release(node)
            at -= 1
        return total >= wanted

    def garbage_collect(self) -> None:
        """Give back old large blocks, until the process is below its threshold."""
        assert self.limit is not None
        threshold = int(self.collect_above * self.limit)
        if self.reserved <= threshold:
            return
        target, reclaimed, pool = self.reserved - threshold, 0, self.pools[""][1]
        whole = [n for n in pool.blocks if not n.prev and not n.next]
        age, count = sum(pool.calls - n.gc_base for n in whole), len(whole)
        freed = True
        while reclaimed < target and freed and count:
            mean, freed = age / count, False
            for node in list(pool.blocks):
                old = pool.calls - node.gc_base
                if not node.prev and not node.next and node.arena is None and old >= mean:
                    freed, reclaimed = True, reclaimed + node.size
                    age, count = age - old, count - 1
                    self.release(node)

    def release_cached(self) -> None:
        """Give back all that is whole and free, in the common pools and in those of dead graphs."""
        owners = [graph for graph, users in self.use_count.items() if users == 0]
        if not self.underway:
            self.synchronize()
            owners.append("")
        for owner in owners:
            for pool in self.pools[owner]:
                to_unmap = []
                for node in list(pool.blocks):
                    if node.arena is not None:
                        to_unmap.append(node)
                    elif not node.prev and not node.next:
                        self.release(node)
                for node in to_unmap:
                    self.unmap(node)
                    if not node.prev and not node.next:
                        pool.unmapped.remove(node)

    def release(self, node: Node) -> None:
        """Give one block back to the device."""
        node.pool.blocks.remove(node)
        self.reserved -= node.size

    def capture(self, graph: str) -> None:
        """Begin to allocate to the pool of a graph."""
        self.pools.setdefault(graph, (Pool(True, graph), Pool(False, graph)))
        self.use_count[graph] = self.use_count.get(graph, 0) + 1
        self.underway = graph

    def end_capture(self) -> None:
        """End it."""
        self.underway = ""

    def reset(self, graph: str) -> None:
        """Drop one use of a graph's pool."""
        self.use_count[graph] -= 1

    def layout(self) -> list[tuple[int, int, bool, bool]]:
        """Return address, size, allocated, and free of every block with memory, by address."""
        free = [node for pools in self.pools.values() for pool in pools for node in pool.blocks]
        return sorted(
            (node.ptr, node.size, node.allocated, node in free) for node in [*free, *self.active]
        )
