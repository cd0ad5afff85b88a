"""Random puts, gets, copies and atomic operations on global arrays of two PEs, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import Serve, serving

EXAMPLES = 150


@pytest.fixture(
    scope="module",
    params=[("host", "on"), ("host", "off"), ("emulated", "on"), ("emulated", "off")],
    ids="-".join,
)
def serve(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """serve(plan): carried out by a job of two PEs, which stays for all plans."""
    kind, mapping = request.param
    address = str(tmp_path_factory.mktemp("plans") / "socket")
    with serving(address, 2, "served_copies.py", kind, mapping=mapping) as carry_out:
        yield carry_out


def slices(extent: int) -> st.SearchStrategy[slice]:
    ends = st.none() | st.integers(-extent - 1, extent + 1)
    return st.builds(slice, ends, ends, st.none() | st.integers(-3, 3).filter(bool))


def axis_keys(extent: int) -> st.SearchStrategy[Any]:
    return slices(extent) | st.integers(-extent, extent - 1) if extent else slices(extent)


def keys(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*(axis_keys(extent) for extent in shape))


def row_keys(shape: tuple[int, ...]) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(-shape[0], shape[0] - 1), max_size=6, unique_by=lambda row: row % shape[0])


def boxes(shape: tuple[int, ...], extents: tuple[int, ...]) -> st.SearchStrategy[tuple[slice, ...]]:
    """Slices of `shape` that select `extents` elements."""

    def along(extent: int, wanted: int) -> st.SearchStrategy[slice]:
        step = st.integers(1, max(1, (extent - 1) // max(1, wanted - 1)) if wanted > 1 else 1)
        return step.flatmap(
            lambda by: st.integers(0, extent - ((wanted - 1) * by + 1)).map(
                lambda first: slice(first, first + (wanted - 1) * by + 1, by)
            )
        )

    return st.tuples(*(along(extent, wanted) for extent, wanted in zip(shape, extents, strict=True)))


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], str, list[tuple[Any, ...]]]:
    axes = draw(st.integers(1, 3))
    shape = st.tuples(*(st.integers(1, 9) for _ in range(axes)))
    shapes = draw(st.tuples(shape, shape))
    dtype = draw(st.sampled_from(["i4", "i8", "u8", "f8"]))
    steps: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(1, 8))):
        which = draw(st.integers(0, 1))
        operation = draw(st.sampled_from(["get", "put", "add", "copy", "out", "rows"]))
        if operation == "copy":
            other = draw(st.integers(0, 1))
            extents = tuple(
                draw(st.integers(1, min(a, b))) for a, b in zip(shapes[which], shapes[other], strict=True)
            )
            steps.append(
                (
                    "copy",
                    which,
                    draw(boxes(shapes[which], extents)),
                    other,
                    draw(boxes(shapes[other], extents)),
                )
            )
        elif operation == "add":
            steps.append(("add", which, tuple(draw(st.integers(-n, n - 1)) for n in shapes[which])))
        elif operation == "rows":
            steps.append((draw(st.sampled_from(["get", "put"])), which, draw(row_keys(shapes[which]))))
        else:
            steps.append((operation, which, draw(keys(shapes[which]))))
    return list(shapes), dtype, steps


@given(plan=plans())
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_as_numpy_does_it(serve: Serve, plan: Any) -> None:
    assert serve(plan) == ""
