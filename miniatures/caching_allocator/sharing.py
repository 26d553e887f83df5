"""The allocator's second step: memory that several streams use, and pools that belong to graphs."""

from __future__ import annotations

from dataclasses import dataclass

from miniatures.caching_allocator.allocator import Allocator, Block, Key, Segment


@dataclass(eq=False)
class Mark:
    """A CUDA event: the block waits until the stream has come to it."""

    stream: int
    block: Block
    passed: bool = False


class Shared(Allocator):
    """An allocator that knows of streams, and of the private pools of CUDA graphs."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self.marks, self.deferred = list[Mark](), list[Block]()
        self.in_graph = dict[Block, set[int]]()  # uses that were noted during a capture
        self.capturing, self.users = "", dict[str, int]()

    def malloc(self, requested: int, stream: int = 0) -> Block:
        """Hand out a block, after a look at which marks the streams have passed."""
        if not self.capturing:
            self._look()
        return super().malloc(requested, stream)

    def record_stream(self, block: Block, stream: int) -> None:
        """Note that another stream uses the block; that counts when the block is freed."""
        if stream != block.segment.key[0]:
            block.uses.add(stream)
            if self.capturing:
                self.in_graph.setdefault(block, set()).add(stream)

    def free(self, block: Block) -> None:
        """Take a block back; one that others use has to wait for a mark on each of them."""
        if not block.uses:
            super().free(block)
            return
        block.allocated = False
        if self.capturing:
            self.deferred.append(block)
        else:
            self._set_marks(block)

    def finish(self, stream: int) -> None:
        """Let a stream come to the end of what is queued on it by now."""
        for mark in self.marks:
            mark.passed |= mark.stream == stream

    def capture(self, graph: str) -> None:
        """Serve requests from the private pool of a graph, until `end_capture`."""
        self.capturing, self.users[graph] = graph, self.users.get(graph, 0) + 1

    def end_capture(self) -> None:
        """Serve requests from the common pools again."""
        self.capturing = ""

    def reset(self, graph: str) -> None:
        """Drop one use of a private pool; after the last one it may be given back."""
        self.users[graph] -= 1

    def empty_cache(self) -> None:
        """Wait for all marks, and give back what is whole and free, of pools without users too."""
        if not self.capturing:
            self._look()
            for mark in self.marks:
                mark.passed = True
            self._look()
        super().empty_cache()

    def _may_wait(self) -> bool:
        return not self.capturing

    def _place(self, requested: int, stream: int) -> tuple[int, Key]:
        size, (_, small, _) = super()._place(requested, stream)
        return size, (stream, small, self.capturing)

    def _release(self, segment: Segment) -> None:
        owner = segment.key[2]
        if not self.users[owner] if owner else not self.capturing:
            super()._release(segment)

    def _set_marks(self, block: Block) -> None:
        self.marks += [Mark(stream, block) for stream in block.uses]
        block.marks, block.uses = len(block.uses), set()

    def _look(self) -> None:
        for block in self.deferred:
            block.uses -= self.in_graph.pop(block, set())
            self._set_marks(block)
            if not block.marks:
                self._join(block)
        self.deferred.clear()
        for mark in self.marks:
            if mark.passed:
                mark.block.marks -= 1
                if not mark.block.marks:
                    self._join(mark.block)
        self.marks = [mark for mark in self.marks if not mark.passed]
