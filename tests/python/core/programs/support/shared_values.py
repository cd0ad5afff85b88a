"""Values of every kind that chares of a PE may share, must not share, or have once in each process."""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import math
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


class Point(NamedTuple):
    x: Any
    y: Any


class LoosePoint(Point):
    """Has a __dict__."""


@dataclasses.dataclass(frozen=True)
class Settings:
    size: Any
    name: Any = "a name"


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    size: Any
    name: Any = "a name"


@dataclasses.dataclass(frozen=True)
class More(Settings, abc.ABC, Generic[T]):
    more: Any = (1, 2.5)


@dataclasses.dataclass
class Open:
    size: Any


@dataclasses.dataclass(frozen=True)
class Cached:
    size: int

    @functools.cached_property
    def table(self) -> list[int]:
        return [0] * self.size


class Once:
    """As functools.cached_property, which other packages have too."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, value: Any, owner: type) -> Any:
        return value.__dict__.setdefault(self.name, [])


@dataclasses.dataclass(frozen=True)
class WithOnce:
    size: int
    table = Once()


@dataclasses.dataclass(frozen=True, slots=True)
class Forwarding:
    """Looks attributes up that it does not have, and fails for names."""

    inner: tuple[int, ...]

    def __getattr__(self, name: Any) -> Any:
        return self.inner[name]


class Nameless(enum.Enum):
    ONE = 1

    @property
    def name(self) -> str:
        raise RuntimeError("has no name")


class Unfrozen(Settings):
    """No dataclass itself, so it takes any attribute."""


@dataclasses.dataclass(frozen=True)
class OverList(list[int]):
    size: int = 0


@dataclasses.dataclass(frozen=True)
class Counted:
    """Counts how often objects of it are made on this PE."""

    size: int

    def __new__(cls, *_: Any) -> Counted:
        made.append(cls)
        return super().__new__(cls)


@dataclasses.dataclass(frozen=True)
class Reduced:
    size: int

    def __reduce__(self) -> Any:
        return make_reduced, (self.size,)


def make_reduced(size: int) -> Reduced:
    made.append(Reduced)
    return Reduced(size)


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


class Meta(type):
    """Of classes whose objects may do anything."""


class WithMeta(metaclass=Meta):
    pass


made: list[type] = []  # what Counted and Reduced have made on this PE

# A call shares nothing if its arguments take fewer than 20 bytes.
SMALL = [10**6, 1.5, "a text", b"bytes", np.float64(2.5)]
SHARED = [
    10**30,
    2 + 3j,
    "a text of a kilobyte " * 50,
    "\ud800",
    b"x" * 20_000,
    (1000, (2.5, "x"), b"y", None),
    tuple(range(1000, 1500)),
    frozenset({1000, ("a", 2.5)}),
    range(5, 1000),
    slice(1000, None, (2000,)),
    ...,
    np.datetime64("2026-01-01"),
    Point(1000, (2.5,)),
    Settings(1000, ("a", 2.5)),
    Settings(Settings(frozenset({Slotted(1000)}), np.float32(2)), Color.RED),
    Slotted(1000, "b"),
    More(1000, "b"),
    Counted(7),
    Forwarding((1000, 2)),
]
SEPARATE: list[Any] = [
    [1, 2],
    {"a": 1},
    {1000, 2000},
    bytearray(b"abc"),
    memoryview(b"abc"),
    np.arange(3),
    np.zeros(3, "i4,f8")[0],
    (1000, [2000]),
    ((1000, ({"a": 1},)),),
    frozenset({Unfrozen(1000)}),
    slice(None, [1000]),
    Point(1, [2]),
    LoosePoint(1, 2),
    Settings([1000]),
    Settings((1, Settings({"a": 1}))),
    Settings(np.arange(3)),
    Slotted([1000]),
    Open(1000),
    Cached(3),
    WithOnce(3),
    Unfrozen(1000),
    OverList(),
    Reduced(3),
    Box(1000),
    WithMeta(),
    Settings(WithMeta()),
]
# There is one in each process, however it is sent.
SINGLE: list[Any] = [
    None,
    True,
    Color.RED,
    Access.READ | Access.WRITE,
    Nameless.ONE,
    math.sin,
    make_reduced,
    Box,
    Color,
    int,
]
