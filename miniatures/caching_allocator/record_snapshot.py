"""The miniature's state in the form of `torch.cuda.memory._snapshot`, its sums, and its message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from miniatures.caching_allocator.allocator import Allocator, Block, MiB
from miniatures.caching_allocator.growing import Growing
from miniatures.caching_allocator.tuning import Settings, Tuned


@dataclass(frozen=True)
class Sums:
    """The five sums of `torch.cuda.memory_stats`, in bytes.

    `requested` counts what is handed out or awaits a mark, as `active` does. `inactive_split` is
    free and cannot be given back: a part of a segment of which another part is in use.
    """

    requested: int
    allocated: int
    active: int
    inactive_split: int
    reserved: int

    def __str__(self) -> str:
        return ", ".join(f"{name} {value / MiB:g}" for name, value in vars(self).items()) + " MiB"


def sums(allocator: Allocator) -> Sums:
    """Return an allocator's sums."""
    blocks = allocator.blocks()
    active = [block for block in blocks if not block.free]
    return Sums(
        requested=sum(block.requested for block in active),
        allocated=sum(block.size for block in blocks if block.allocated),
        active=sum(block.size for block in active),
        inactive_split=sum(block.size for block in blocks if block.free and cut(block)),
        reserved=allocator.reserved,
    )


def cut(block: Block) -> bool:
    """Tell whether a block is a part of a segment that does not grow."""
    return len(block.segment.blocks) > 1 and not block.segment.grows


def snapshot(allocator: Allocator, events: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return an allocator's segments and blocks as PyTorch's readers take them.

    :param events: the history, as `Recorded` keeps it.
    """
    return {
        "segments": [
            {
                "device": 0,
                "address": row[0].address,
                "total_size": sum(block.size for block in row),
                "allocated_size": sum(block.size for block in row if block.allocated),
                "active_size": sum(block.size for block in row if not block.free),
                "stream": segment.key[0],
                "segment_type": "small" if segment.key[1] else "large",
                "is_expandable": segment.grows,
                "blocks": [
                    {
                        "address": block.address,
                        "size": block.size,
                        "requested_size": block.requested,
                        "state": "inactive" if block.free else
                        "active_allocated" if block.allocated else "active_pending_free",
                        "frames": [],
                    }
                    for block in row
                ],
            }
            for segment in allocator.segments
            if (row := [block for block in segment.blocks if block.mapped])
        ],
        "device_traces": [list(events)],
    }  # fmt: skip


@dataclass
class History:
    """What an allocator did, in the order in which it did it."""

    events: list[dict[str, Any]] = field(default_factory=list)

    def note(self, action: str, address: int, size: int, stream: int = 0) -> None:
        """Add an event, such as ``alloc``; sizes are in bytes."""
        self.events.append({"action": action, "addr": address, "size": size, "stream": stream})


def recorded(capacity: int, settings: Settings | None = None) -> tuple[Tuned, History]:
    """Return an allocator without growing segments, and the history that it keeps."""
    history = History()

    class Recorded(Tuned):
        def malloc(self, requested: int, stream: int = 0) -> Block:
            block = super().malloc(requested, stream)
            history.note("alloc", block.address, requested, stream)
            return block

        def free(self, block: Block) -> None:
            address, requested = block.address, block.requested
            history.note("free_requested", address, requested)
            super().free(block)
            if block.free:
                history.note("free_completed", address, requested)

        def _new(self, wanted: int, key: tuple[int, bool, str]) -> Block | None:
            block = super()._new(wanted, key)
            if block is not None:
                history.note("segment_alloc", block.address, block.size, key[0])
            return block

        def _give_back(self, segment: Any) -> None:
            history.note("segment_free", segment.blocks[0].address, segment.blocks[0].size)
            super()._give_back(segment)

    return Recorded(capacity, settings), history


def message(allocator: Tuned, wanted: int, total: int) -> str:
    """Return the numbers of PyTorch's *out of memory*, one sentence a line.

    :param wanted: what was asked from the device, in bytes.
    :param total: bytes of the device; what `allocator` may not have of it belongs to others.
    """
    found = sums(allocator)
    free = allocator.capacity - found.reserved
    pools = sum(b.size for b in allocator.blocks() if b.free and b.segment.key[2])
    say = [
        f"Tried to allocate {shown(wanted)}.",
        f"GPU 0 has a total capacity of {shown(total)} of which {shown(free)} is free.",
        f"Including non-PyTorch memory, this process has {shown(total - free)} memory in use.",
        f"Of the allocated memory {shown(found.allocated + pools)} is allocated by PyTorch,",
        f"with {shown(pools)} allocated in private pools (e.g., CUDA Graphs)," if pools else "",
        f"and {shown(found.reserved - found.allocated - pools)} is reserved by PyTorch but "
        "unallocated.",
    ]
    return "\n".join(filter(None, say))


def shown(size: int) -> str:
    """Return a size as the message writes it."""
    for unit, name in ((2**30, "GiB"), (MiB, "MiB"), (1024, "KiB")):
        if size > unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"


def device(capacity: int, settings: Settings | None = None, *, grows: bool = False) -> Tuned:
    """Return an allocator with settings, and with segments that grow if asked."""
    return (Growing if grows else Tuned)(capacity, settings)


def fits(allocator: Allocator, size: int) -> bool:
    """Try to allocate `size` bytes, and tell whether there was memory; a block stays handed out."""
    try:
        allocator.malloc(size)
    except MemoryError:
        return False
    return True


def after_batches(*, grows: bool = False) -> Tuned:
    """Return a device of 100 MiB after three tensors of 30 MiB went and three of 16 came."""
    gpu = device(100 * MiB, grows=grows)
    for block in [gpu.malloc(30 * MiB) for _ in range(3)]:
        gpu.free(block)
    for _ in range(3):
        gpu.malloc(16 * MiB)
    return gpu
