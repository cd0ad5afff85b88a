"""The plate: how it is cut into strips, and its exact temperatures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RATE = 0.2  # of the difference to the neighbours that flows in a step
#: The waves at the start: half waves along rows and columns, and the amplitude.
WAVES = ((1, 1, 1.0), (3, 2, 0.5))
TOLERANCE = 1e-10

Values = npt.NDArray[np.float64]


class UserError(Exception):
    """A mistake of the user, reported as one sentence."""


@dataclass(frozen=True)
class Problem:
    """A plate of `size` x `size` points within its edges, in so many strips, in memory of a kind."""

    size: int
    strips: int
    check_every: int
    until: float
    memory: str

    def rows(self, strip: int) -> tuple[int, int]:
        """The first row of a strip, from 0, and the one behind its last."""
        return self.size * strip // self.strips, self.size * (strip + 1) // self.strips


def temperatures(size: int, first: int, last: int, steps: int) -> Values:
    """The exact ones after so many steps: of the rows from `first` to before `last`, with two edge columns.

    Row -1 and row `size` are edges too.
    """
    spacing = np.pi / (size + 1)
    rows, columns = spacing * (np.arange(first, last) + 1), spacing * np.arange(size + 2)
    total = np.zeros((last - first, size + 2))
    for k, m, amplitude in WAVES:
        shrink = 1.0 - 4.0 * RATE * (np.sin(k * spacing / 2) ** 2 + np.sin(m * spacing / 2) ** 2)
        total += amplitude * shrink**steps * np.outer(np.sin(k * rows), np.sin(m * columns))
    return total
