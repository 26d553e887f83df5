"""In which order `torch.sum` adds the float32 numbers of one row, to the last bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from miniatures.cpu_performance.parallel_for import GRAIN_SIZE, for_each

Floats = NDArray[np.float32]
LEVELS = 4
"""Sums, sums of sums, and so on: so many accumulators stand one above the other."""
SIDE_BY_SIDE = 4
"""So many vectors are added to at the same time, as one would have to wait for itself."""


def total(x: Floats, lanes: int = 8, threads: int = 1) -> np.float32:
    """Return the sum of a row whose elements lie side by side.

    :param lanes: numbers in a vector; 1 stands for a row with gaps, which takes no vectors.
    :param threads: what `torch.get_num_threads` says. Each sums a piece, then the pieces are
        summed in the same way.
    """
    cut = for_each(len(x), threads, GRAIN_SIZE)
    if len(cut) < 2:
        return _piece(x, lanes)
    partial = np.zeros(threads, np.float32)
    for thread, first, last in cut:
        partial[thread] = _piece(x[first:last], lanes)
    return _piece(partial, lanes)


def _piece(x: Floats, lanes: int) -> np.float32:
    if len(x) < lanes:
        lanes = 1
    vectors = len(x) // lanes
    found = np.float32(0)
    for left_over in x[vectors * lanes :]:
        found += left_over
    for lane in row_sum(x[: vectors * lanes].reshape(vectors, lanes)):
        found += lane
    return found


def row_sum(vectors: Floats) -> Floats:
    """Add vectors, four side by side; then what is left over, then the four."""
    count, lanes = vectors.shape
    turns = count // SIDE_BY_SIDE
    four = cascade(vectors[: turns * SIDE_BY_SIDE].reshape(turns, SIDE_BY_SIDE * lanes))
    parts = four.reshape(SIDE_BY_SIDE, lanes)
    for vector in vectors[turns * SIDE_BY_SIDE :]:
        parts[0] += vector
    for part in parts[1:]:
        parts[0] += part
    return np.array(parts[0])


def cascade(turns: Floats) -> Floats:
    """Add up the rows; a level that has added `step` of them hands its sum up and starts anew.

    So numbers of a like size are added, and a rounding error grows with the levels, not with
    the length.
    """
    count, width = turns.shape
    power = max(4, _ceil_log2(count) // LEVELS)
    step = 1 << power
    level = np.zeros((LEVELS, width), np.float32)
    done = 0
    while done + step <= count:
        for turn in turns[done : done + step]:
            level[0] += turn
        done += step
        for above in range(1, LEVELS):
            level[above] += level[above - 1]
            level[above - 1] = 0
            if done & ((step - 1) << (above * power)):
                break  # this level is not full yet
    for turn in turns[done:]:
        level[0] += turn
    for above in range(1, LEVELS):
        level[0] += level[above]
    return np.array(level[0])


def _ceil_log2(count: int) -> int:
    return max(count - 1, 0).bit_length() or count
