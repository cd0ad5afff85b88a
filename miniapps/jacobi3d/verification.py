"""The serial reference and the comparison with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decomposition import Triple
from stencil import Values, initial_values, update_with_numpy


def solve_serially(points: Triple, iterations: int) -> Values:
    """The whole grid after `iterations`, without its boundary: one array, no blocks, no halos."""
    old = initial_values((0, 0, 0), points)
    new = old.copy()
    for _ in range(iterations):
        update_with_numpy(old, new)
        old, new = new, old
    return old[1:-1, 1:-1, 1:-1].copy()


@dataclass(frozen=True)
class Comparison:
    """How a result differs from what was expected."""

    num_points: int
    num_different: int
    largest_difference: float = 0.0
    first: Triple = (0, 0, 0)
    first_result: float = 0.0
    first_expected: float = 0.0

    @property
    def equal(self) -> bool:
        """To the last bit."""
        return self.num_different == 0

    def __str__(self) -> str:
        if self.equal:
            return f"all {self.num_points} values equal those of the serial reference to the last bit"
        return (
            f"{self.num_different} of {self.num_points} values differ from the serial reference, by up to "
            f"{self.largest_difference}; the first is point {self.first}: {self.first_result} instead of "
            f"{self.first_expected}"
        )


def compare(result: Values, expected: Values) -> Comparison:
    """Compares two grids of one shape, bit by bit."""
    different = np.argwhere(
        np.ascontiguousarray(result).view(np.uint64) != np.ascontiguousarray(expected).view(np.uint64)
    )
    if len(different) == 0:
        return Comparison(expected.size, 0)
    first = tuple(int(i) for i in different[0])
    distance = np.nan_to_num(np.abs(result - expected), nan=np.inf)
    return Comparison(
        num_points=expected.size,
        num_different=len(different),
        largest_difference=float(distance.max()),
        first=(first[0], first[1], first[2]),
        first_result=float(result[first]),
        first_expected=float(expected[first]),
    )
