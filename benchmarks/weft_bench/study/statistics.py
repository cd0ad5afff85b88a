"""The statistics of a study: bootstrapped intervals of means and their ratios, Mann-Whitney U tests."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

#: Of every interval.
CONFIDENCE = 0.99
RESAMPLES = 20_000
#: Up to so many values in both samples together the distribution of U is computed exactly.
MOST_EXACT = 100

_Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Interval:
    """An estimate, and the ends of its interval of CONFIDENCE."""

    estimate: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class UTest:
    """`u` is the number of pairs in which the first sample has the larger value; ties count a half.

    `p` is the two-sided probability of a difference at least as large between samples of one distribution.
    """

    u: float
    p: float


def interval_of_mean(sample: Sequence[float], seed: int = 0) -> Interval:
    """The mean with its bootstrapped percentile interval. `seed` decides the resamples."""
    return _interval(float(np.mean(sample)), _resampled_means(sample, np.random.default_rng(seed)))


def interval_of_ratio(above: Sequence[float], below: Sequence[float], seed: int = 0) -> Interval:
    """The mean of `above` over the mean of `below`; both samples, of positive values, are resampled."""
    generator = np.random.default_rng(seed)
    ratios = _resampled_means(above, generator) / _resampled_means(below, generator)
    return _interval(float(np.mean(above) / np.mean(below)), ratios)


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> UTest:
    """The two-sided Mann-Whitney U test of two samples of at least one value.

    The probability is exact for up to MOST_EXACT values, also with ties. For more it is that of the normal
    distribution, with the corrections for ties and for continuity.
    """
    doubled_ranks = _doubled_ranks(np.concatenate([first, second]))
    rank_sum = int(doubled_ranks[: len(first)].sum())
    u = rank_sum / 2 - len(first) * (len(first) + 1) / 2
    if len(doubled_ranks) <= MOST_EXACT:
        return UTest(u, _exact_p(doubled_ranks, len(first), rank_sum))
    return UTest(u, _normal_p(doubled_ranks, len(first), u))


def _resampled_means(sample: Sequence[float], generator: np.random.Generator) -> _Floats:
    values = np.asarray(sample, dtype=np.float64)
    chosen = generator.integers(len(values), size=(RESAMPLES, len(values)))
    means: _Floats = values[chosen].mean(axis=1)
    return means


def _interval(estimate: float, resampled: _Floats) -> Interval:
    low, high = np.quantile(resampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(estimate, float(low), float(high))


def _doubled_ranks(values: _Floats) -> npt.NDArray[np.int64]:
    """Twice the rank of each value. Ties share the mean of their ranks, so these are whole numbers."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (2 * last - counts + 1)[group]


def _exact_p(doubled_ranks: npt.NDArray[np.int64], size: int, rank_sum: int) -> float:
    """From the sums of all choices of `size` ranks, each of which has the same probability."""
    largest = int(doubled_ranks.sum())
    # choices[n, s]: in how many ways n of the ranks so far have the sum s.
    choices = np.zeros((size + 1, largest + 1))
    choices[0, 0] = 1.0
    for rank in doubled_ranks:
        for n in range(size, 0, -1):  # downwards: each rank is taken once
            choices[n, rank:] += choices[n - 1, : largest + 1 - rank]
    ways = choices[size]
    tail = min(ways[: rank_sum + 1].sum(), ways[rank_sum:].sum()) / ways.sum()
    return min(1.0, 2.0 * float(tail))


def _normal_p(doubled_ranks: npt.NDArray[np.int64], size: int, u: float) -> float:
    total = len(doubled_ranks)
    other = total - size
    _, counts = np.unique(doubled_ranks, return_counts=True)
    ties = float((counts.astype(np.float64) ** 3 - counts).sum()) / (total * (total - 1))
    variance = size * other / 12 * (total + 1 - ties)
    if variance <= 0:  # all values are equal
        return 1.0
    z = max(0.0, abs(u - size * other / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))
