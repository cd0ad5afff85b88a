"""Arguments that the chares of a PE share: shared_arguments.py MODE. Prints "all checked"."""

from __future__ import annotations

import dataclasses
import gc
import sys
import weakref
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_values import (
    SEPARATE,
    SHARED,
    SINGLE,
    SMALL,
    Box,
    Cached,
    Color,
    Counted,
    LoosePoint,
    More,
    Open,
    Point,
    Reduced,
    Settings,
    Slotted,
    Unfrozen,
    made,
)

import weft

kept: dict[int, tuple[Any, ...]] = {}  # by chare, on this PE
dead_or_alive: list[weakref.ref[Any]] = []


class Cell(weft.Chare):
    def __init__(self) -> None:
        self.go = False
        self.log: list[Any] = []

    def keep(self, *values: Any, **named: Any) -> int:
        kept[id(self)] = (*values, *named.values(), *named)
        return weft.my_pe()

    async def keep_later(self, *values: Any) -> int:
        await weft.yield_now()
        return self.keep(*values)

    @weft.when(lambda self: self.go)
    def keep_when(self, *values: Any) -> int:
        return self.keep(*values)

    def open(self) -> None:
        self.go = True

    def result(self, *values: Any) -> None:
        self.keep(*values)

    def part(self, value: Any) -> None:
        self.contribute(value, weft.Reducer.custom(either), self.proxy.result.bind("bound", [1]))

    def collect(self) -> None:
        self.contribute(1.5, weft.Reducer.gather, self.proxy.result)

    def watch(self, value: Any) -> None:
        dead_or_alive.append(weakref.ref(value))

    def leave(self, value: Any) -> None:
        self.watch(value)
        raise SystemExit(0)

    def move(self, to_pe: int) -> None:
        self.migrate(to_pe)

    def describe_and_change(self, *values: Any, **named: Any) -> Any:
        description = [describe(value) for value in (*values, *named.values())]
        for value in (*values, *named.values()):
            change(value)
        return description


class Other(Cell):
    pass


class Pe(weft.Chare):
    def shared(self) -> tuple[int, list[bool]]:
        """How many chares have kept arguments here, and for each argument whether it is one object."""
        rows = list(kept.values())
        kept.clear()
        width = len(rows[0]) if rows else 0
        return len(rows), [all(row[i] is rows[0][i] for row in rows) for i in range(width)]

    def num_made(self) -> int:
        number = len(made)
        made.clear()
        return number

    def num_alive(self) -> int:
        gc.collect()
        alive = sum(ref() is not None for ref in dead_or_alive)
        dead_or_alive.clear()
        return alive


def either(a: Any, b: Any) -> Any:
    return a


# --- What chares share


async def expect_shared(pes: Any, expected: list[bool], num_chares: int) -> None:
    by_pe = await pes.shared.call()
    assert sum(number for number, _ in by_pe) == num_chares, by_pe
    for number, are_shared in by_pe:
        if number > 1:
            assert are_shared == expected, [i for i, e in enumerate(expected) if e != are_shared[i]]


async def forms() -> None:
    values = [*SHARED, *SEPARATE, *SINGLE]
    cells = await weft.Array(Cell, 7)
    others = await weft.Array(Other, 5)
    pes = await weft.Group(Pe)
    both = weft.combine(cells[1:5], others[::2])
    proxies = [cells, cells[3], cells[::2], both, cells.keep, cells[0].keep.bind(1)]
    shared = [True] * len(SHARED) + [False] * len(SEPARATE) + [True] * len(SINGLE)
    for value, is_shared in zip([*values, *proxies], [*shared, *[True] * len(proxies)], strict=True):
        for send_to in (cells.keep, cells.keep_later, cells[1:5].keep, cells.keep.bind(value)):
            arguments = () if send_to not in (cells.keep, cells.keep_later, cells[1:5].keep) else (value,)
            results = await send_to.call(*arguments)
            await expect_shared(pes, [is_shared], len(results))
    await cells.keep.call(*SMALL, *values)
    await expect_shared(pes, [True] * len(SMALL) + shared, 7)
    for small in SMALL:
        await cells.keep.call(small)
        await expect_shared(pes, [False], 7)
    await both.keep.call(*values)
    by_pe = await pes.shared.call()  # the cells of a PE share, and so do the others of a PE
    assert sum(number for number, _ in by_pe) == 7
    await cells.keep.call(1000, [1], first=(1000,), second=[2], third="t")
    await expect_shared(pes, [True, False, True, False, True, True, True, True], 7)
    for _ in range(3):
        calls = cells.keep_when.call((1000,), [2])
        await weft.quiescence()
        cells.open()
        await calls
        await expect_shared(pes, [True, False], 7)
    cells.part(Settings(1000))
    await weft.quiescence()
    await expect_shared(pes, [True, False, True], 7)
    cells.collect()
    await weft.quiescence()
    await expect_shared(pes, [False], 7)
    # What travels out of band comes to each chare in a message of its own.
    await cells.keep.call((1000,), b"x" * 100_000, np.zeros(100_000), Settings(1))
    await expect_shared(pes, [False] * 4, 7)
    await weft.gather(*[cells[i].keep.call((1000,)) for i in range(7)])
    await expect_shared(pes, [False], 7)


async def counted() -> None:
    cells = await weft.Array(Cell, 8)
    pes = await weft.Group(Pe)
    num_pes = weft.num_pes()
    await pes.num_made.call()
    for argument, expected in ((Counted(1), [1] * num_pes), (Reduced(1), None)):
        made.clear()
        await cells.keep.call(argument)
        numbers = await pes.num_made.call()
        assert sum(numbers) == (8 if expected is None else num_pes), numbers
        assert expected is None or numbers == expected, numbers


async def released() -> None:
    cells = await weft.Array(Cell, 8)
    pes = await weft.Group(Pe)
    for _ in range(3):
        cells.watch(Settings(1000))
        await weft.quiescence()
        assert await pes.num_alive.call() == [0] * weft.num_pes()


async def leaves() -> None:
    cells = await weft.Array(Cell, 8)
    cells.leave(Settings(1000))
    await weft.sleep(60)


async def moved() -> None:
    """Chares that have moved, and calls that move with them."""
    cells = await weft.Array(Cell, 8)
    pes = await weft.Group(Pe)
    last = weft.num_pes() - 1
    calls = cells.keep_when.call((1000,), [2])
    await weft.quiescence()
    cells[0].move(last)
    cells[1].move(last)
    cells.keep((1000,), [2])
    await weft.quiescence()
    by_pe = await pes.shared.call()
    assert sum(number for number, _ in by_pe) == 8, by_pe
    assert not any(shared[1] for number, shared in by_pe if number > 1), by_pe
    cells.open()
    await calls
    assert sum(number for number, _ in await pes.shared.call()) == 8
    await cells.keep.call((1000,), [2])
    await expect_shared(pes, [True, False], 8)


# --- No chare sees what another one has changed


def describe(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        own = getattr(value, "__dict__", None)  # of LoosePoint
        return f"{type(value).__name__}({', '.join(map(describe, value))}, {own})"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}({', '.join(sorted(map(describe, value)))})"
    if isinstance(value, dict):
        return f"dict({', '.join(f'{describe(k)}: {describe(v)}' for k, v in value.items())})"
    if isinstance(value, slice):
        return f"slice({describe(value.start)}, {describe(value.stop)})"
    if isinstance(value, np.ndarray):
        return f"array({value.tolist()})"
    if isinstance(value, Box):
        return f"Box({describe(value.__dict__)})"
    if dataclasses.is_dataclass(value):
        fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
        return f"{type(value).__name__}({describe(fields)}, {describe(getattr(value, '__dict__', {}))})"
    return repr(value)


def change(value: Any) -> None:
    """All that can be changed, in it and in its parts."""
    for part in parts_of(value):
        change(part)
    for attempt in (
        lambda: value.append("changed"),
        lambda: value.add("changed"),
        lambda: value.update(changed=1),
        lambda: value.extend(b"changed"),
        lambda: value.fill(77),
        lambda: value.__setitem__(0, 77),
        lambda: setattr(value, "changed", 1),
        lambda: setattr(value, "size", 77),
        lambda: value.table.append(1),
    ):
        try:
            attempt()
        except (AttributeError, TypeError, ValueError, IndexError):
            continue


def parts_of(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, slice):
        return [value.start, value.stop]
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return list(value.__dict__.values()) if isinstance(value, Box) else []


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.sampled_from([Color.RED, np.float64(1.5), np.int32(7), range(3, 2000), Cached(2)])
    | st.integers(1, 4).map(np.arange)
    | st.binary(max_size=5).map(bytearray)
)
HASHABLE = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(inner, max_size=3)
        | st.builds(Settings, inner, inner)
        | st.builds(Slotted, inner)
        | st.builds(Unfrozen, inner)
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    SCALARS | HASHABLE,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(HASHABLE, inner, max_size=3)
        | st.sets(HASHABLE, max_size=3)
        | st.builds(Settings, inner, inner)
        | st.builds(Slotted, inner, inner)
        | st.builds(More, inner)
        | st.builds(Point, inner, inner)
        | st.builds(LoosePoint, inner, inner)
        | st.builds(Open, inner)
        | st.builds(Box, inner)
        | st.builds(slice, inner, inner)
    ),
    max_leaves=20,
)
settings.register_profile("weft", deadline=None, derandomize=True, database=None, max_examples=200)
settings.load_profile("weft")


async def apart() -> None:
    examples: list[tuple[list[Any], dict[str, Any]]] = []

    @given(st.lists(VALUES, max_size=3), st.dictionaries(st.sampled_from("abc"), VALUES, max_size=2))
    def collect(values: list[Any], named: dict[str, Any]) -> None:
        examples.append((values, named))

    collect()
    assert len(examples) >= 100
    cells = await weft.Array(Cell, 5)
    for values, named in examples:
        expected = [describe(value) for value in (*values, *named.values())]
        for method in (cells.describe_and_change, cells[1:].describe_and_change):
            for description in await method.call(*values, **named):
                assert description == expected, (description, expected)


if __name__ == "__main__":
    if sys.argv[1] == "leaves":
        try:
            weft.run(leaves)
        except SystemExit as left:
            assert left.code == 0
        gc.collect()
        assert not any(ref() for ref in dead_or_alive)
    else:
        weft.run(globals()[sys.argv[1]])
    print("all checked")
