"""The serial reference and the comparison with it, and the checksum for comparison with other programs."""

from __future__ import annotations

import zlib
from argparse import Namespace

import numpy as np

from grid import Pair, Range
from kernels import Values, initial_values, update_with_numpy


def solve_serially(points: Pair, iterations: int) -> Values:
    """The whole grid after `iterations`, without its boundary: one array, no blocks, no halos, NumPy."""
    old = initial_values(Range((0, 0), points))
    new = old.copy()
    for _ in range(iterations):
        update_with_numpy(old, new)
        old, new = new, old
    return old[1:-1, 1:-1].copy()


def difference(result: Values, expected: Values) -> str:
    """How two grids of one shape differ, bit by bit; "" if they do not."""
    bits, expected_bits = (np.ascontiguousarray(grid).view(np.uint64) for grid in (result, expected))
    different = np.argwhere(bits != expected_bits)
    if len(different) == 0:
        return ""
    row, column = (int(i) for i in different[0])
    return (
        f"{len(different)} of {expected.size} values differ from the serial reference; the first is point "
        f"({row}, {column}): {result[row, column]!r} instead of {expected[row, column]!r}"
    )


def checksum(result: Values) -> str:
    """Of every bit of the whole grid."""
    return f"{zlib.crc32(np.ascontiguousarray(result)):08x}"


def examine(grid: Values | None, options: Namespace) -> tuple[str | None, str | None]:
    """The difference and the checksum of a whole grid, as far as they are wanted; None if not."""
    if grid is None:
        return None, None
    found = None
    if options.verify:
        rows, columns = grid.shape
        found = difference(grid, solve_serially((rows, columns), options.warmup + options.iterations))
    return found, checksum(grid) if options.checksum else None
