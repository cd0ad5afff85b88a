"""The grid, the particles at the start and at the end, and the blocks. problem.h is the same in C++.

Nothing here needs Weft: the programs for mpi4py and charm4py use this module too.

A grid of size x size cells is periodic in both dimensions; `size` is even. The grid point at the lower left
corner of a cell has the cell's column and row. Points of even columns have the charge 1, those of odd columns
-1. Particles start in the centres of cells, with charges by which each one moves 2 k + 1 columns and m rows
in each step.

Particle `id` is one of 1 to `particles`. Its first column and row follow from its id alone, see
Problem.columns_of() and rows_of(), so every block makes its own particles, and every particle can be checked
without its history.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

#: The numbers that a particle consists of, in this order: position, velocity, charge, id.
X, Y, VX, VY, CHARGE, ID = range(6)
NUM_FIELDS = 6

#: Places of grid points and of particles in a block are numbers of 32 bits.
MAX_SIZE, MAX_PARTICLES = 40_000, 2**31 - 1
#: The largest k, and the largest |m|.
MAX_MOVE = 1_000_000
#: That of C++ too.
MAX_SEED = 2**63 - 1

DISTRIBUTIONS = ("geometric", "sinusoidal", "linear", "patch", "uniform")


class UserError(Exception):
    """The text is one sentence that says what is wrong and what to write instead."""


@dataclass(frozen=True)
class Problem:
    """The same on all processes.

    `ratio` belongs to the geometric distribution, `alpha` and `beta` to the linear one, `patch` to the patch:
    its first and last column, its first and last row.
    """

    size: int
    particles: int
    k: int = 0
    m: int = 1
    distribution: str = "geometric"
    ratio: float = 0.997
    alpha: float = 1.0
    beta: float = 1.0
    patch: tuple[int, int, int, int] = (0, 0, 0, 0)
    seed: int = 1
    blocks_x: int = 1
    blocks_y: int = 1

    @property
    def columns_per_step(self) -> int:
        return 2 * self.k + 1

    @property
    def num_blocks(self) -> int:
        return self.blocks_x * self.blocks_y

    @property
    def size_bytes(self) -> int:
        """Of all particles."""
        return 8 * NUM_FIELDS * self.particles

    def starts(self) -> Integers:
        """Element c is the number of particles that start in columns before c."""
        return _starts(self)

    def columns_of(self, ids: Integers, arrays: Any = np) -> Integers:
        """The first columns. `arrays` is the module of the array `ids`: numpy, or cupy on a GPU."""
        return arrays.searchsorted(arrays.asarray(self.starts()), ids - 1, side="right") - 1

    def rows_of(self, ids: Integers) -> Integers:
        """The first rows: hashes of the ids, scaled to the rows of the distribution."""
        first, count = (self.patch[2], self.patch[3] - self.patch[2] + 1)
        if self.distribution != "patch":
            first, count = 0, self.size
        high = hash_of(ids.astype(np.uint64), self.seed) >> np.uint64(32)
        return first + ((high * np.uint64(count)) >> np.uint64(32)).astype(np.int64)

    def expected_x(self, ids: Integers, steps: int, arrays: Any = np) -> npt.NDArray[np.float64]:
        """Positions after that many steps."""
        return (self.columns_of(ids, arrays) + steps * self.columns_per_step) % self.size + 0.5

    def expected_y(self, ids: Integers, steps: int) -> npt.NDArray[np.float64]:
        return (self.rows_of(ids) + steps * self.m) % self.size + 0.5

    def particles_of(self, block: Block, arrays: Any = np) -> npt.NDArray[np.float64]:
        """Those that start in the block, one column for each: NUM_FIELDS rows, an array of `arrays`."""
        first, end = self.starts()[[block.first_column, block.end_column]].tolist()
        ids = arrays.arange(first + 1, end + 1, dtype=np.int64)
        rows = self.rows_of(ids)
        ids = ids[(rows >= block.first_row) & (rows < block.end_row)]
        columns = self.columns_of(ids, arrays)
        particles = arrays.empty((NUM_FIELDS, len(ids)))
        particles[X] = columns + 0.5
        particles[Y] = self.rows_of(ids) + 0.5
        particles[VX] = 0.0
        particles[VY] = float(self.m)
        particles[CHARGE] = arrays.where(columns % 2 == 0, 1.0, -1.0) * self.charge()
        particles[ID] = ids
        return particles

    def charge(self) -> float:
        """Moves a particle in the centre of a cell by `columns_per_step` columns in its first step."""
        r_squared = 0.5 * 0.5 + 0.5 * 0.5
        cos = 0.5 / math.sqrt(r_squared)
        return self.columns_per_step * (1.0 / (cos / r_squared + cos / r_squared))


@functools.lru_cache(maxsize=8)
def _starts(problem: Problem) -> Integers:
    """The particles are shared out to columns by weight, rounded such that the sum is exact."""
    sums = [0.0]
    for weight in _weights(problem):
        sums.append(sums[-1] + weight)
    return np.array([math.floor(problem.particles * (part / sums[-1]) + 0.5) for part in sums], np.int64)


def _weights(problem: Problem) -> list[float]:
    """Of the columns. Plain loops: C++ comes to the same bits."""
    size = problem.size
    if problem.distribution == "geometric":
        weights = [1.0]
        while len(weights) < size:
            weights.append(weights[-1] * problem.ratio)
        return weights
    if problem.distribution == "sinusoidal":
        cosines = [math.cos(2.0 * math.pi / (size - 1) * column) for column in range(size)]
        return [cosine * cosine for cosine in cosines]
    if problem.distribution == "linear":
        return [problem.beta - problem.alpha * (column / (size - 1)) for column in range(size)]
    if problem.distribution == "patch":
        return [1.0 if problem.patch[0] <= column <= problem.patch[1] else 0.0 for column in range(size)]
    return [1.0] * size


def hash_of(values: Hashes, seed: int) -> Hashes:
    """The `values`-th outputs of the generator SplitMix64 (Steele, Lea, Flood 2014) after `seed`."""
    z = values * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def check(problem: Problem) -> None:
    """Raises UserError if there is no such problem."""
    size = problem.size
    if size % 2 != 0:
        raise UserError(
            f"--size must be even, not {size}: charges alternate by column, and the grid is periodic"
        )
    if size > MAX_SIZE or problem.particles > MAX_PARTICLES:
        raise UserError(f"--size must be at most {MAX_SIZE}, and --particles at most {MAX_PARTICLES}")
    if problem.seed > MAX_SEED:
        raise UserError(f"--seed must be at most {MAX_SEED}")
    if problem.k > MAX_MOVE or abs(problem.m) > MAX_MOVE:
        raise UserError(f"--k and --m must be at most {MAX_MOVE}")
    if problem.distribution == "geometric" and not 0 < problem.ratio <= 1:
        raise UserError(f"--ratio must be above 0 and at most 1, not {problem.ratio}")
    if problem.distribution == "linear" and not (
        0 < problem.beta < math.inf and -math.inf < problem.alpha <= problem.beta
    ):
        raise UserError("--linear ALPHA BETA: BETA must be above 0, and ALPHA at most BETA")
    if problem.distribution == "patch":
        left, right, bottom, top = problem.patch
        if not (0 <= left <= right < size and 0 <= bottom <= top < size):
            raise UserError(
                f"--patch LEFT RIGHT BOTTOM TOP must lie in the grid of {size} x {size} cells, not "
                f"{problem.patch}"
            )
    if problem.blocks_x > size or problem.blocks_y > size:
        raise UserError(
            f"a grid of {size} x {size} cells cannot be cut into {problem.blocks_x} x {problem.blocks_y} "
            "blocks: take a larger --size, or a smaller --odf"
        )


def cut(num_blocks: int, split: str) -> tuple[int, int]:
    """The numbers of blocks in x and in y. `split` is x, y, or 2d, whose blocks are as square as possible."""
    if split == "x":
        return num_blocks, 1
    if split == "y":
        return 1, num_blocks
    in_y = next(n for n in range(math.isqrt(num_blocks), 0, -1) if num_blocks % n == 0)
    return num_blocks // in_y, in_y


@dataclass(frozen=True)
class Block:
    """The cells of columns `first_column` to `end_column` - 1 and rows `first_row` to `end_row` - 1."""

    first_column: int
    end_column: int
    first_row: int
    end_row: int

    @classmethod
    def of(cls, problem: Problem, number: int) -> Block:
        """Blocks are numbered with y fastest, so those with successive numbers are neighbours."""
        in_x, in_y = divmod(number, problem.blocks_y)
        return cls(
            in_x * problem.size // problem.blocks_x,
            (in_x + 1) * problem.size // problem.blocks_x,
            in_y * problem.size // problem.blocks_y,
            (in_y + 1) * problem.size // problem.blocks_y,
        )

    def grid(self) -> npt.NDArray[np.int8]:
        """The charges [column, row] of the points around its cells: one more of each than there are cells.

        They are 1 and -1. In bytes, the grid of a block stays in a core's cache.
        """
        shape = (self.end_column - self.first_column + 1, self.end_row - self.first_row + 1)
        columns = np.arange(self.first_column, self.end_column + 1)
        charges = np.where(columns % 2 == 0, 1, -1).astype(np.int8)
        return np.ascontiguousarray(np.broadcast_to(charges[:, None], shape))


def partners(problem: Problem, number: int) -> list[int]:
    """The other blocks into which a particle of this one can get in a step, and from which one comes.

    A step reaches 2 k + 1 columns and |m| rows. If blocks are smaller than that, particles jump over blocks.
    """
    size, own = problem.size, Block.of(problem, number)
    in_x = [
        i
        for i in range(problem.blocks_x)
        if _reaches(
            size,
            problem.columns_per_step,
            own.first_column,
            own.end_column,
            *_range(size, problem.blocks_x, i),
        )
    ]
    in_y = [
        j
        for j in range(problem.blocks_y)
        if _reaches(size, abs(problem.m), own.first_row, own.end_row, *_range(size, problem.blocks_y, j))
    ]
    return [n for i in in_x for j in in_y if (n := i * problem.blocks_y + j) != number]


def _range(size: int, num_blocks: int, number: int) -> tuple[int, int]:
    return number * size // num_blocks, (number + 1) * size // num_blocks


def _reaches(size: int, reach: int, first: int, end: int, other_first: int, other_end: int) -> bool:
    """Whether `reach` cells lead from one range to the other, around the periodic grid too."""
    if first == other_first:
        return True
    return min((other_first - (end - 1)) % size, (first - (other_end - 1)) % size) <= reach
