"""How the grid is cut into blocks; decomposition.h is the same in C++.

The six faces of a block: 2 d is the lower one in dimension d, 2 d + 1 the upper one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# Along x, y and z.
Triple = tuple[int, int, int]


class UserError(Exception):
    """A mistake of the user, reported as one sentence."""


@dataclass(frozen=True)
class Problem:
    """The points of the whole grid, without its boundary, and the number of blocks along each dimension."""

    points: Triple
    blocks: Triple


@dataclass(frozen=True)
class Range:
    """The part of the grid that a block computes: its first point, and how many there are."""

    first: Triple
    size: Triple


def opposite(face: int) -> int:
    """The face on the other side of a block."""
    return face ^ 1


def divide(points: Triple, num_blocks: int) -> Triple:
    """The numbers of blocks along x, y and z, of product `num_blocks`, with the least area between blocks.

    Of equals, the one with more cuts across x, then y, since those faces lie together in memory.

    Raises:
        UserError: every choice leaves a block without a point.
    """
    fitting = [b for b in _factorisations(num_blocks) if all(b[d] <= points[d] for d in range(3))]
    if not fitting:
        raise UserError(
            f"a grid of {points[0]} x {points[1]} x {points[2]} points cannot be cut into {num_blocks} "
            "blocks (PEs x ODF) that have a point each; make --size larger or --odf smaller"
        )
    return min(fitting, key=lambda blocks: cut_area(points, blocks))


def range_of(problem: Problem, index: Triple) -> Range:
    """The points of block `index`; sizes differ by at most one."""
    first, size = [], []
    for points, blocks, i in zip(problem.points, problem.blocks, index, strict=True):
        lower, upper = points * i // blocks, points * (i + 1) // blocks
        first.append(lower)
        size.append(upper - lower)
    return Range((first[0], first[1], first[2]), (size[0], size[1], size[2]))


def neighbours(problem: Problem, index: Triple) -> dict[int, Triple]:
    """The faces of block `index` that have a neighbour, with the neighbour's index."""
    found = {}
    for face in range(6):
        d, step = face // 2, 1 if face % 2 else -1
        if 0 <= index[d] + step < problem.blocks[d]:
            other = list(index)
            other[d] += step
            found[face] = (other[0], other[1], other[2])
    return found


def cut_area(size: Triple, parts: Triple) -> int:
    """Points of area between parts when a grid of `size` is cut into `parts`."""
    volume = size[0] * size[1] * size[2]
    return sum((parts[d] - 1) * (volume // size[d]) for d in range(3))


def _factorisations(count: int) -> Iterator[Triple]:
    for x in range(count, 0, -1):
        for y in range(count // x, 0, -1):
            if count % x == 0 and count // x % y == 0:
                yield x, y, count // x // y
