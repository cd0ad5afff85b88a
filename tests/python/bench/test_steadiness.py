"""Runs know at which distance of the cores they were made."""

import pytest

from weft_bench.programs import Programs
from weft_bench.steadiness import Steadiness, core_distance_ns


def steady_with(distances):
    """One whose cores are at these distances, the last for ever."""
    left = list(distances)
    return Steadiness(lambda: left.pop(0) if len(left) > 1 else left[0])


def counted():
    calls = []
    return calls, lambda: calls.append(None) or len(calls)


@pytest.mark.parametrize(
    ("distances", "runs", "number"),
    [
        ([40, 42], 1, 0),
        ([40, 180, 41, 41], 2, 0),  # moved away during the first run
        ([40, 180, 180, 181], 2, 1),  # and stayed there
        ([40, 180, 40, 180, 40, 180, 40, 180], 4, None),
        ([None], 1, 0),
    ],
)
def test_a_run_is_made_again_until_the_cores_keep_still(distances, runs, number):
    steady = steady_with(distances)
    calls, function = counted()
    assert steady.run(function) == (runs, number)
    assert len(calls) == runs


def test_distances_are_numbered_as_they_are_first_seen():
    steady = steady_with([180, 181, 40, 39, 200])
    _, function = counted()
    assert [steady.run(function)[1] for _ in range(3)] == [0, 1, 0]
    assert steady.distances_ns == [180, 40]


def test_the_distance_is_unknown_without_its_program(tmp_path):
    assert core_distance_ns(Programs(tmp_path)) is None


def test_the_distance_is_a_time(build_folder):
    assert 1 < core_distance_ns(Programs(build_folder / "benchmarks")) < 1_000_000
