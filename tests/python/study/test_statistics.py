"""The statistics of a study, against known values, brute force and laws that hold for all samples."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft_bench.study import statistics
from weft_bench.study.statistics import interval_of_mean, interval_of_ratio, mann_whitney

settings.register_profile("weft", deadline=None, derandomize=True, database=None)
settings.load_profile("weft")

SAMPLES = st.lists(st.integers(1, 6).map(float), min_size=1, max_size=5)


# Without ties from tables of the distribution of U: 2 / C(m + n, m) if the samples are apart.
@pytest.mark.parametrize(
    ("first", "second", "u", "p"),
    [
        ([1, 2, 3], [4, 5, 6], 0, 2 / 20),
        ([4, 5, 6], [1, 2, 3], 9, 2 / 20),
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 0, 2 / 252),
        ([1, 2, 3, 5, 8], [4, 6, 7, 9, 10], 4, 24 / 252),
        ([19, 22, 16, 29, 24], [20, 11, 17, 12], 17, 14 / 126),
        ([1, 1, 1], [1, 1, 1], 4.5, 1.0),
        ([1.0], [2.0], 0, 1.0),
    ],
)
def test_exact_values_of_the_u_test(first, second, u, p) -> None:
    result = mann_whitney(first, second)
    assert result.u == u
    assert result.p == pytest.approx(p, rel=1e-12)


def test_the_normal_approximation_has_its_known_value(monkeypatch) -> None:
    monkeypatch.setattr(statistics, "MOST_EXACT", 0)
    # z = (17 - 10 - 0.5) / sqrt(5 * 4 * 10 / 12)
    expected = math.erfc(6.5 / math.sqrt(200 / 12) / math.sqrt(2))
    assert expected == pytest.approx(0.1113469, abs=1e-7)
    assert mann_whitney([19, 22, 16, 29, 24], [20, 11, 17, 12]).p == pytest.approx(expected)
    # Ties: U = 6.5, variance = 9 / 12 * (7 - (8 - 2 + 27 - 3) / 30) = 4.5, z = (6.5 - 4.5 - 0.5) / sqrt(4.5)
    assert mann_whitney([2, 3, 3], [1, 2, 3]).p == pytest.approx(
        math.erfc(1.5 / math.sqrt(4.5) / math.sqrt(2))
    )
    assert mann_whitney([1, 1, 1], [1, 1]).p == 1.0


def _p_by_brute_force(first: list[float], second: list[float]) -> float:
    pooled = first + second

    def u_of(chosen: tuple[int, ...]) -> float:
        others = [pooled[i] for i in range(len(pooled)) if i not in chosen]
        return sum(
            1.0 if pooled[i] > other else 0.5 if pooled[i] == other else 0.0
            for i in chosen
            for other in others
        )

    choices = list(itertools.combinations(range(len(pooled)), len(first)))
    all_u = [u_of(choice) for choice in choices]
    own = u_of(tuple(range(len(first))))
    tail = min(sum(u <= own for u in all_u), sum(u >= own for u in all_u))
    return min(1.0, 2 * tail / len(choices))


@given(SAMPLES, SAMPLES)
def test_exact_values_agree_with_all_permutations(first: list[float], second: list[float]) -> None:
    assert mann_whitney(first, second).p == pytest.approx(_p_by_brute_force(first, second), rel=1e-9)


@given(SAMPLES, SAMPLES)
def test_the_u_test_has_no_preference(first: list[float], second: list[float]) -> None:
    one, other = mann_whitney(first, second), mann_whitney(second, first)
    assert one.u + other.u == len(first) * len(second)
    assert one.p == pytest.approx(other.p)
    assert 0 < one.p <= 1


def test_exact_and_approximate_values_agree_for_many_values(monkeypatch) -> None:
    generator = np.random.default_rng(1)
    first, second = generator.normal(0.0, 1.0, 50), generator.normal(0.4, 1.0, 50)
    exact = mann_whitney(first, second).p
    monkeypatch.setattr(statistics, "MOST_EXACT", 0)
    assert mann_whitney(first, second).p == pytest.approx(exact, rel=0.05)


def test_intervals_of_equal_values_have_no_width() -> None:
    mean = interval_of_mean([2.0, 2.0, 2.0])
    assert (mean.estimate, mean.low, mean.high) == (2.0, 2.0, 2.0)
    ratio = interval_of_ratio([3.0, 3.0], [2.0, 2.0, 2.0])
    assert (ratio.estimate, ratio.low, ratio.high) == (1.5, 1.5, 1.5)


@given(st.lists(st.floats(0.5, 100.0), min_size=1, max_size=20), st.integers(0, 5))
@settings(max_examples=30)
def test_an_interval_lies_among_the_values_and_around_the_mean(sample: list[float], seed: int) -> None:
    interval = interval_of_mean(sample, seed)
    slack = 1e-9 * max(sample)
    assert min(sample) - slack <= interval.low <= interval.high <= max(sample) + slack
    assert interval.low - slack <= interval.estimate <= interval.high + slack
    assert interval == interval_of_mean(sample, seed), "the seed decides"


def test_an_interval_has_the_width_that_theory_says() -> None:
    sample = np.random.default_rng(2).normal(10.0, 1.0, 400)
    interval = interval_of_mean(sample)
    half_width = 2.5758 * float(np.std(sample)) / math.sqrt(len(sample))
    assert interval.high - interval.estimate == pytest.approx(half_width, rel=0.1)
    assert interval.estimate - interval.low == pytest.approx(half_width, rel=0.1)
