"""Collectives of device arrays among two and three PEs, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import Serve, serving
from .programs.group_reference import OPERATIONS, REDUCERS, TYPES

EXAMPLES = 40
PLACE_BYTES = (256, 4096)


@pytest.fixture(scope="module", params=[2, 3])
def serve(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """serve(plan): carried out by a job of so many PEs, which stays for all plans."""
    address = str(tmp_path_factory.mktemp("plans") / "socket")
    with serving(address, request.param, "served_groups.py") as carry_out:
        yield carry_out


@st.composite
def plans(draw: st.DrawFn) -> tuple[int, list[tuple[Any, ...]]]:
    place_bytes = draw(st.sampled_from(PLACE_BYTES))
    small = st.integers(0, 40)
    around = st.sampled_from([place_bytes // size * times for size in (2, 4, 8) for times in (1, 2, 3)])
    sizes = small | st.builds(lambda size, more: size + more, around, st.integers(-1, 1))
    one = st.tuples(
        st.sampled_from(OPERATIONS),
        sizes,
        st.sampled_from(TYPES),
        st.sampled_from(sorted(REDUCERS)),
        st.integers(0, 1),  # a root
        st.booleans(),  # in place
    )
    return place_bytes, draw(st.lists(one, min_size=1, max_size=12))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    print_blob=True,
)
@given(plan=plans())
def test_plans(serve: Serve, plan: Any) -> None:
    assert serve(plan) == ""


def test_misuse_and_life(expect_checked: Callable[..., None]) -> None:
    expect_checked(2, "device_groups.py")


def test_a_peer_that_is_not_reached(expect_checked: Callable[..., None]) -> None:
    expect_checked(2, "unreached_group.py", mapping="off")


@pytest.mark.gpu
@pytest.mark.parametrize("num_gpus", [1, 2])
def test_arrays_of_cupy(
    expect_checked: Callable[..., None], need_gpus: Callable[[int], None], num_gpus: int
) -> None:
    pytest.importorskip("cupy", reason="cupy is not installed")
    need_gpus(num_gpus)
    expect_checked(num_gpus, "gpu_groups.py", "cuda")
