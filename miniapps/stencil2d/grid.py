"""How the grid is cut into blocks.

The sides of a block: 0 is the first row, 1 the last row, 2 the first column, 3 the last column.
"""

from __future__ import annotations

from dataclasses import dataclass

# Rows and columns.
Pair = tuple[int, int]


class UserError(Exception):
    """A mistake of the user, reported as one sentence."""


@dataclass(frozen=True)
class Problem:
    """The points of the whole grid, without its boundary, and the number of blocks along each dimension."""

    points: Pair
    blocks: Pair


@dataclass(frozen=True)
class Range:
    """The part of the grid that a block computes: its first point, and how many there are."""

    first: Pair
    size: Pair


def grown(points: Pair, pes: int) -> Pair:
    """The grid of a weakly scaled run, `points` for each PE: doubled along rows and columns in turn."""
    result = list(points)
    dimension = 0
    while pes > 1:
        factor = 2 if pes % 2 == 0 else pes
        result[dimension % 2] *= factor
        dimension += 1
        pes //= factor
    return result[0], result[1]


def divide(points: Pair, num_blocks: int) -> Pair:
    """The numbers of blocks along rows and columns, of product `num_blocks`, with the shortest cuts.

    Of equals, the one with more cuts between rows: a row lies together in memory.

    Raises:
        UserError: every choice leaves a block without a point.
    """
    choices = [(n, num_blocks // n) for n in range(num_blocks, 0, -1) if num_blocks % n == 0]
    fitting = [blocks for blocks in choices if blocks[0] <= points[0] and blocks[1] <= points[1]]
    if not fitting:
        raise UserError(
            f"a grid of {points[0]} x {points[1]} points cannot be cut into {num_blocks} blocks that have a "
            "point each; make --size larger, or use fewer PEs or a smaller --odf"
        )
    return min(fitting, key=lambda blocks: (blocks[0] - 1) * points[1] + (blocks[1] - 1) * points[0])


def range_of(problem: Problem, index: Pair) -> Range:
    """The points of block `index`; sizes differ by at most one."""
    ends = [
        (points * i // blocks, points * (i + 1) // blocks)
        for points, blocks, i in zip(problem.points, problem.blocks, index, strict=True)
    ]
    (top, bottom), (left, right) = ends
    return Range((top, left), (bottom - top, right - left))


def neighbours(problem: Problem, index: Pair) -> dict[int, Pair]:
    """The sides of block `index` that have a neighbour, with the neighbour's index."""
    row, column = index
    around = {0: (row - 1, column), 1: (row + 1, column), 2: (row, column - 1), 3: (row, column + 1)}
    rows, columns = problem.blocks
    return {side: (i, j) for side, (i, j) in around.items() if 0 <= i < rows and 0 <= j < columns}
