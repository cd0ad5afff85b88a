"""Runs that saw another machine are made again."""

import pytest

from weft.bench import steadiness
from weft.bench.programs import Programs
from weft.bench.steadiness import Steadiness, core_distance_ns


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(steadiness, "_PAUSE_S", 0.0)


def steady_with(distances):
    """One whose cores are at these distances, the last for ever."""
    left = list(distances)
    return Steadiness(lambda: left.pop(0) if len(left) > 1 else left[0])


def counted():
    calls = []
    return calls, lambda: calls.append(None) or len(calls)


@pytest.mark.parametrize(
    ("distances", "runs"),
    [
        ([40, 42, 38], 1),  # first, before, after
        ([40, 41, 180, 41, 41], 2),  # moved away during the first run
        ([40, 180, 180, 41, 41], 1),  # away at first: waits without a run
        ([None], 1),
    ],
)
def test_the_run_that_counts_is_at_the_first_distance(distances, runs):
    steady = steady_with(distances)
    calls, function = counted()
    assert steady.run(function) == runs
    assert len(calls) == runs
    assert steady.unsteady == 0


def test_a_machine_that_does_not_come_back_is_told():
    steady = steady_with([40, 180])
    _, function = counted()
    assert steady.run(function) == 1
    assert steady.unsteady == 1


def test_the_distance_is_unknown_without_its_program(tmp_path):
    assert core_distance_ns(Programs(tmp_path)) is None


def test_the_distance_is_a_time(build_folder):
    assert 1 < core_distance_ns(Programs(build_folder / "benchmarks")) < 1_000_000
