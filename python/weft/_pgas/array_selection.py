"""What an index of a GlobalArray selects: rows of its first axis, and the same part of each of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import _core


@dataclass(frozen=True)
class Selection:
    """A part of an array. Strides and the offset of axes behind the first are in elements."""

    #: Of the part.
    shape: tuple[int, ...]
    #: The rows. One row if an int chose it.
    rows: range
    #: Whether the rows are an axis of the part: an int did not choose one.
    keeps_rows: bool
    #: Row numbers in any order in place of `rows`.
    row_list: list[int] | None
    #: What is chosen of each other axis.
    inner: tuple[int | range, ...]
    inner_offset: int
    #: Of the other axes of the part.
    inner_strides: tuple[int, ...]

    def __str__(self) -> str:
        """As an index of NumPy."""
        rows = _text_of(self.rows if self.keeps_rows else self.rows[0])
        if self.row_list is not None:
            rows = f"[{len(self.row_list)} rows]"
        return f"[{', '.join([rows, *map(_text_of, self.inner)])}]"

    def meets(self, other: Selection) -> bool:
        """Whether both have an element in common. REQUIRES: of arrays of one shape, without lists of rows."""
        return _meet(self.rows, other.rows) and all(
            _meet(_as_range(mine), _as_range(theirs))
            for mine, theirs in zip(self.inner, other.inner, strict=True)
        )


def _as_range(chosen: int | range) -> range:
    return range(chosen, chosen + 1) if isinstance(chosen, int) else chosen


def _text_of(chosen: int | range) -> str:
    if isinstance(chosen, int):
        return str(chosen)
    if not chosen:
        return "0:0"
    stop = str(chosen.stop) if chosen.stop >= 0 else ""
    return f"{chosen.start}:{stop}" + (f":{chosen.step}" if chosen.step != 1 else "")


def _meet(a: range, b: range) -> bool:
    """Whether both have a number in common."""
    if not a or not b:
        return False
    a, b = (one if one.step > 0 else one[::-1] for one in (a, b))
    divisor = math.gcd(a.step, b.step)
    if (b.start - a.start) % divisor:
        return False
    # Without ends, both have the first number of `a` that `b` has too, and every `common` after it.
    common = a.step * b.step // divisor
    steps = (b.start - a.start) // divisor * pow(a.step // divisor, -1, b.step // divisor)
    first = a.start + steps % (b.step // divisor) * a.step
    first += max(0, -(-(b.start - first) // common)) * common
    return first <= min(a[-1], b[-1])


def element_of(shape: tuple[int, ...], key: tuple[Any, ...]) -> tuple[int, int] | None:
    """The row of an element, and its place in the row. None unless the index is one int for each axis.

    Raises:
        weft.Error: there is no such element.
    """
    if len(key) != len(shape):
        return None
    if not all(type(one) is int for one in key):
        if not all(_is_int(one) for one in key):
            return None
        key = tuple(map(operator.index, key))
    place = 0
    for one, extent in zip(key[1:], shape[1:], strict=True):
        place = place * extent + _inside(one, extent, shape)
    return _inside(key[0], shape[0], shape), place


def _is_int(key: Any) -> bool:
    """An int, one of NumPy for example, and no bool."""
    try:
        operator.index(key)
    except TypeError:
        return False
    return not isinstance(key, (bool, np.bool_)) and getattr(key, "shape", ()) == ()


def select(shape: tuple[int, ...], key: Any) -> Selection:
    """Resolves an index of NumPy: ints, slices and ``...``, and for the first axis a list or an array of
    rows.

    Raises:
        weft.Error: another index, or one outside of the array.
    """
    keys = _one_for_each_axis(shape, key if isinstance(key, tuple) else (key,))
    row_items = math.prod(shape[1:])
    inner: list[int | range] = []
    inner_offset = 0
    inner_shape: list[int] = []
    inner_strides: list[int] = []
    items = row_items
    for extent, one in zip(shape[1:], keys[1:], strict=True):
        items = items // extent if extent else 0
        chosen = _range_of(extent, one, shape)
        inner.append(chosen)
        if isinstance(chosen, int):
            inner_offset += chosen * items
            continue
        inner_offset += chosen.start * items if chosen else 0
        inner_shape.append(len(chosen))
        inner_strides.append(chosen.step * items)
    if _is_list(keys[0]):
        if any(one != slice(None) for one in keys[1:]):
            raise _core.Error(
                "a list of rows of a GlobalArray goes with whole rows only: give `:` for the other axes"
            )
        row_list = _row_list(shape, keys[0])
        part = (len(row_list), *inner_shape)
        return Selection(part, range(0), True, row_list, tuple(inner), 0, tuple(inner_strides))
    rows = _range_of(shape[0], keys[0], shape)
    keeps_rows = not isinstance(rows, int)
    part = (len(rows), *inner_shape) if isinstance(rows, range) else tuple(inner_shape)
    return Selection(
        part, _as_range(rows), keeps_rows, None, tuple(inner), inner_offset, tuple(inner_strides)
    )


def _one_for_each_axis(shape: tuple[int, ...], keys: tuple[Any, ...]) -> list[Any]:
    dots = [place for place, one in enumerate(keys) if one is Ellipsis]
    given = len(keys) - len(dots)
    if len(dots) > 1 or given > len(shape):
        raise _core.Error(f"an array of shape {shape} has no part {keys}: there are too many indices")
    place = dots[0] if dots else len(keys)
    return [*keys[:place], *[slice(None)] * (len(shape) - given), *keys[place + len(dots) :]]


def _range_of(extent: int, key: Any, shape: tuple[int, ...]) -> range | int:
    if isinstance(key, slice):
        try:
            return range(*key.indices(extent))
        except (TypeError, ValueError) as error:
            raise _core.Error(f"an array of shape {shape} has no part {key}: {error}") from None
    if not _is_int(key):
        raise _core.Error(f"a GlobalArray has no index {key!r}: give ints, slices, `...`, or rows in a list")
    return _inside(operator.index(key), extent, shape)


def _inside(index: int, extent: int, shape: tuple[int, ...]) -> int:
    if not -extent <= index < extent:
        error = _core.Error(
            f"the index {index} is outside of an axis of {extent}, in an array of shape {shape}"
        )
        error.code = "out of range"
        raise error
    return index % extent


def _is_list(key: Any) -> bool:
    return isinstance(key, list) or (hasattr(key, "tolist") and getattr(key, "ndim", 0) > 0)


def _row_list(shape: tuple[int, ...], key: Any) -> list[int]:
    rows: Sequence[Any] = key if isinstance(key, list) else key.tolist()
    if rows and all(isinstance(row, bool) for row in rows):
        if len(rows) != shape[0]:
            raise _core.Error(f"a mask of {len(rows)} rows does not fit an array of shape {shape}")
        return [row for row, chosen in enumerate(rows) if chosen]
    try:
        return [_inside(operator.index(row), shape[0], shape) for row in rows]
    except TypeError:
        raise _core.Error("rows of a GlobalArray are a list of ints, or of a bool for each row") from None
