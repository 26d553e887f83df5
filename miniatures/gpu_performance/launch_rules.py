"""How many threads a kernel gets: occupancy, and the launches that PyTorch chooses.

`occupancy` is NVIDIA's calculation for chips since Volta. `elementwise` and `reduction` are the
rules in ``CUDALoops.cuh`` and ``Reduce.cuh``, for float32 and contiguous memory.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32


@dataclass(frozen=True)
class Chip:
    """What one multiprocessor (SM) holds at most, and how many SMs there are.

    :param blocks: blocks resident on an SM.
    :param threads: threads resident on an SM.
    :param registers: registers of an SM, 32 bits each.
    :param shared: bytes of shared memory of an SM; each block takes 1 KiB more than it asks for.
    :param sms: how many SMs.
    """

    blocks: int
    threads: int
    registers: int
    shared: int
    sms: int


H100 = Chip(blocks=32, threads=2048, registers=65536, shared=228 * 1024, sms=132)
A100 = Chip(blocks=32, threads=2048, registers=65536, shared=164 * 1024, sms=108)
RTX3090 = Chip(blocks=16, threads=1536, registers=65536, shared=100 * 1024, sms=82)


@dataclass(frozen=True)
class Occupancy:
    """Blocks that an SM holds at once, what limits them, and the share of its threads in use."""

    blocks: int
    limit: str
    share: float


def occupancy(
    chip: Chip,
    threads: int,
    registers: int = 0,
    shared: int = 0,
) -> Occupancy:
    """Return how many blocks fit into an SM.

    Registers are given to whole warps, in lots of 256, and each of an SM's four parts has a
    quarter of them. Shared memory is given in lots of 128 bytes.
    """
    warps = _up(threads, WARP)
    limits = {"blocks": chip.blocks}
    limits["threads"] = chip.threads // WARP // warps
    if registers:
        of_a_warp = _up(registers * WARP, 256) * 256
        limits["registers"] = chip.registers // 4 // of_a_warp * 4 // warps
    asked = _up(shared + 1024, 128) * 128
    limits["shared memory"] = chip.shared // asked
    limit = min(limits, key=lambda name: limits[name])
    share = limits[limit] * warps * WARP / chip.threads
    return Occupancy(limits[limit], limit, share)


@dataclass(frozen=True)
class Launch:
    """Blocks and threads of a launch, elements that a thread handles, elements in one access."""

    grid: tuple[int, int]
    block: tuple[int, int]
    each: int
    vector: int = 1

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1]

    def waves(self, chip: Chip, registers: int = 32) -> float:
        """Return how many times the launch fills all SMs."""
        held = occupancy(chip, self.threads, registers).blocks
        return self.grid[0] * self.grid[1] / (held * chip.sms)


def elementwise(n: int, size: int, moved: int, addresses: tuple[int, ...] = (0,)) -> Launch:
    """Return how PyTorch launches an elementwise kernel on contiguous tensors of one type.

    :param n: how many elements.
    :param size: bytes of an element.
    :param moved: bytes read and written for one element.
    :param addresses: of all tensors; each must be divisible by the bytes of one access.
    """
    threads, each = 128, 16 if moved == 1 else 8
    fits = min(next(v for v in (8, 4, 2, 1) if a % (size * v) == 0) for a in addresses)
    vector = min(16 // size, fits)  # chips before Hopper stop at 4
    if vector == 1:
        each = 4
    return Launch((_up(n, threads * each), 1), (threads, 1), each, vector)


def reduction(rows: int, columns: int, axis: int | None, chip: Chip = H100) -> Launch:
    """Return how PyTorch launches the float32 sum of a contiguous matrix, over an axis or all."""
    if axis is None:
        outputs, inputs, along, vector = 1, rows * columns, True, 1
    else:
        outputs, inputs = (rows, columns) if axis == 1 else (columns, rows)
        along, vector = axis == 1, 1
    wide, high = (inputs, outputs) if along else (outputs, inputs)
    if along and wide >= 128:
        wide //= 4
    if not along:
        vector = next(v for v in (4, 2, 1) if columns % v == 0)
        wide //= vector
    most = 512 // vector
    wide, high = (_power(wide) if wide < most else most, _power(high) if high < most else most)
    width = min(wide, WARP)
    height = min(high, most // width)
    width = min(wide, most // height)
    step = width if along else 1
    each = _up(inputs, step)
    outs = 1 if along else width
    split = each >= min(height * 16, 256)
    if split:
        step *= height
        each = _up(inputs, step)
    else:
        outs *= height
    grid, ctas = _up(outputs // vector, outs), 1
    target = chip.sms * (chip.threads // (width * height))
    if split and each >= 256 and grid <= target:
        ctas = max(min(_up(target, grid), _up(each, 16)), _up(each, 256))
        each = _up(inputs, step * ctas) if ctas > 1 else each
    return Launch((grid, ctas), (width, height), each, vector)


def _up(a: int, b: int) -> int:
    return -(-a // b)


def _power(n: int) -> int:
    return max(1, 1 << (n.bit_length() - 1)) if n else 1
