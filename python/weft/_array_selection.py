"""What an index of a GlobalArray selects: rows of its first axis, and the same part of each of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    inner_offset: int
    #: Of the other axes of the part.
    inner_strides: tuple[int, ...]


def element_of(shape: tuple[int, ...], key: tuple[Any, ...]) -> tuple[int, int] | None:
    """The row of an element, and its place in the row. None unless the index is one int for each axis.

    Raises:
        weft.Error: there is no such element.
    """
    if len(key) != len(shape) or not all(type(one) is int for one in key):
        return None
    place = 0
    for one, extent in zip(key[1:], shape[1:], strict=True):
        place = place * extent + _inside(one, extent, shape)
    return _inside(key[0], shape[0], shape), place


def select(shape: tuple[int, ...], key: Any) -> Selection:
    """Resolves an index of NumPy: ints, slices and ``...``, and for the first axis a list or an array of
    rows.

    Raises:
        weft.Error: another index, or one outside of the array.
    """
    keys = _one_for_each_axis(shape, key if isinstance(key, tuple) else (key,))
    row_items = math.prod(shape[1:])
    inner_offset = 0
    inner_shape: list[int] = []
    inner_strides: list[int] = []
    items = row_items
    for extent, one in zip(shape[1:], keys[1:], strict=True):
        items = items // extent if extent else 0
        chosen = _range_of(extent, one, shape)
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
        return Selection((len(row_list), *inner_shape), range(0), True, row_list, 0, tuple(inner_strides))
    rows = _range_of(shape[0], keys[0], shape)
    if isinstance(rows, int):
        return Selection(
            tuple(inner_shape), range(rows, rows + 1), False, None, inner_offset, tuple(inner_strides)
        )
    return Selection((len(rows), *inner_shape), rows, True, None, inner_offset, tuple(inner_strides))


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
    if isinstance(key, bool) or not hasattr(key, "__index__") or getattr(key, "shape", ()) != ():
        raise _core.Error(f"a GlobalArray has no index {key!r}: give ints, slices, `...`, or rows in a list")
    return _inside(operator.index(key), extent, shape)


def _inside(index: int, extent: int, shape: tuple[int, ...]) -> int:
    if not -extent <= index < extent:
        raise _core.Error(
            f"the index {index} is outside of an axis of {extent}, in an array of shape {shape}"
        )
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
