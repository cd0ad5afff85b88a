"""The check of the result: where each particle must be follows from its id. Nothing here needs Weft."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pic_problem import ID, NUM_FIELDS, VX, VY, Problem, X, Y, hash_of

#: The largest distance between a particle and its place, in each dimension.
EPSILON = 1e-6


@dataclass(frozen=True)
class Found:
    """What a block, or all blocks, hold.

    `checksum` is a hash of every bit of positions, velocities and ids.
    """

    count: int = 0
    id_sum: int = 0
    misplaced: int = 0
    first_misplaced: int = 0
    checksum: int = 0

    def __add__(self, other: Found) -> Found:
        first = min(filter(None, (self.first_misplaced, other.first_misplaced)), default=0)
        return Found(
            self.count + other.count,
            self.id_sum + other.id_sum,
            self.misplaced + other.misplaced,
            first,
            (self.checksum + other.checksum) % 2**64,
        )


def examine(problem: Problem, particles: Any, steps: int, arrays: Any = np) -> Found:
    """What one block holds after that many steps.

    `particles` has NUM_FIELDS rows. It is an array of the module `arrays`: numpy, or cupy on a GPU.
    """
    if particles.shape[1] == 0:
        return Found()
    known = (particles[ID] >= 1) & (particles[ID] <= problem.particles)
    known &= particles[ID] == arrays.floor(particles[ID])
    ids = arrays.where(known, particles[ID], 1).astype(np.int64)
    is_right = known & (abs(particles[X] - problem.expected_x(ids, steps, arrays)) <= EPSILON)
    is_right &= abs(particles[Y] - problem.expected_y(ids, steps)) <= EPSILON
    wrong = ids[~is_right]
    first = int(wrong.min()) if len(wrong) else 0
    return Found(len(ids), int(ids.sum()), len(wrong), first, _checksum(particles, arrays))


def _checksum(particles: Any, arrays: Any) -> int:
    assert particles.shape[0] == NUM_FIELDS
    hashes = arrays.zeros(particles.shape[1], np.uint64)
    for field in (ID, X, Y, VX, VY):
        hashes = hash_of(hashes ^ arrays.ascontiguousarray(particles[field]).view(np.uint64), 0)
    return int(hashes.sum(dtype=np.uint64))


@dataclass(frozen=True)
class Verdict:
    """Whether the result is right, in one sentence."""

    correct: bool
    text: str


def judge(problem: Problem, found: Iterable[Found]) -> Verdict:
    """Judges what all blocks hold together."""
    total = sum(found, Found())
    n = problem.particles
    faults = []
    if total.count != n:
        faults.append(f"there are {total.count} particles instead of {n}")
    if total.id_sum != n * (n + 1) // 2:
        faults.append(f"the sum of the ids is {total.id_sum} instead of {n * (n + 1) // 2}")
    if total.misplaced:
        faults.append(
            f"{total.misplaced} particles are not where they must be; the one with the least id is "
            f"{total.first_misplaced}"
        )
    if faults:
        return Verdict(False, "; ".join(faults))
    return Verdict(True, f"all {n} particles are where they must be, and none is lost or doubled")
