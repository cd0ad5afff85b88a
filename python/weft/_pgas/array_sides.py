"""Copies of parts of a GlobalArray as pieces of memory.

Both ends of a copy are cut along their first axis where one of them passes to another rank.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weft import _core
from weft._pgas.array_selection import Selection

if TYPE_CHECKING:
    import numpy as np

#: source, remote and stream of a copy.
Reports = tuple[Any, Any, Any]
NO_REPORTS: Reports = (None, None, None)


class Layout:
    """Where the rows of an array lie: blocks of equal size, in the order of the ranks."""

    __slots__ = ("block", "dtype", "is_released", "pointers", "row_items", "shape", "takes_numbers")

    def __init__(self, shape: tuple[int, ...], pointers: list[_core.GlobalPointer]) -> None:
        self.shape = shape
        #: To the first element of each rank's block.
        self.pointers = pointers
        self.dtype: np.dtype[Any] = pointers[0].dtype
        #: Whether weft.pgas.put() of a number refuses what the type does not hold.
        self.takes_numbers = self.dtype.isnative and self.dtype.char in "?bBhHiIlLqQfd"
        #: Rows of a block; the last blocks may have fewer.
        self.block = max(1, -(-shape[0] // len(pointers)))
        self.row_items = math.prod(shape[1:])
        self.is_released = False

    def expect_live(self) -> None:
        """Raises weft.Error if this PE has released the array."""
        if not self.is_released:
            return
        error = _core.Error(
            f"the global array of {self.dtype}, shape {self.shape}, cannot be used: it has been released here"
        )
        error.code = "not found"
        raise error

    def rows(self, rank: int) -> range:
        end = self.shape[0]
        return range(min(rank * self.block, end), min((rank + 1) * self.block, end))

    def place(self, row: int) -> _core.GlobalPointer:
        """Of the first element of the row."""
        if self.is_released:
            self.expect_live()
        rank, row_of_block = divmod(row, self.block)
        return self.pointers[rank] + row_of_block * self.row_items

    def cuts(self, rows: range) -> Iterator[int]:
        """The positions in `rows`, which are not empty, between which they lie on one rank."""
        first, last = sorted((rows[0] // self.block, rows[-1] // self.block))
        for rank in range(first, last + 1):
            yield from _positions(rows, self.rows(rank))

    def places_of(self, row_list: list[int]) -> list[tuple[_core.GlobalPointer, list[int], list[int]]]:
        """For each rank that has some: its block, their places in it, and their places in the list.

        Places are in elements.
        """
        self.expect_live()
        places: dict[int, tuple[list[int], list[int]]] = {}
        for position, row in enumerate(row_list):
            rank, row_of_block = divmod(row, self.block)
            elements, positions = places.setdefault(rank, ([], []))
            elements.append(row_of_block * self.row_items)
            positions.append(position * self.row_items)
        return [(self.pointers[rank], *both) for rank, both in sorted(places.items())]


def _positions(rows: range, block: range) -> tuple[int, int]:
    """The positions in `rows`, first and end, whose rows are in the block."""
    if rows.step < 0:
        first, end = _positions(rows[::-1], block)
        return len(rows) - end, len(rows) - first
    first = -(-(block.start - rows.start) // rows.step)
    end = -(-(block.stop - rows.start) // rows.step)
    return min(max(first, 0), len(rows)), min(max(end, 0), len(rows))


class Side:
    """An end of a copy, of some shape."""

    shape: tuple[int, ...]

    def cuts(self) -> set[int]:
        """Where a part of the first axis begins that is one piece of memory, and the end of the last."""
        return {0, self.shape[0]} if self.shape else set()

    def part(self, first: int, end: int) -> Any:
        """The end of a copy, as _core._copy_strided_pieces() takes it."""
        raise NotImplementedError


class ArraySide(Side):
    """An array of this PE."""

    def __init__(self, array: Any) -> None:
        self.shape = tuple(array.shape)
        self._array = array

    def part(self, first: int, end: int) -> Any:
        if not self.shape or (first, end) == (0, self.shape[0]):
            return self._array
        return self._array[first:end]


class PointerSide(Side):
    """Elements in C order from a pointer on."""

    def __init__(self, pointer: _core.GlobalPointer, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._pointer = pointer

    def part(self, first: int, end: int) -> Any:
        items = tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))
        strides = tuple(item * self._pointer.dtype.itemsize for item in items)
        return (self._pointer + first * (items[0] if items else 0), strides)


class SelectionSide(Side):
    """A part of a GlobalArray. REQUIRES: without a list of rows."""

    def __init__(self, layout: Layout, selection: Selection) -> None:
        self.shape = selection.shape
        self._layout = layout
        self._selection = selection

    def meets(self, other: SelectionSide) -> bool:
        """Whether both have memory in common."""
        is_same = self._layout is other._layout or (
            self._layout.shape == other._layout.shape and self._layout.pointers == other._layout.pointers
        )
        return is_same and self._selection.meets(other._selection)

    def cuts(self) -> set[int]:
        rows = self._selection.rows
        has_cuts = self._selection.keeps_rows and len(rows) > 0
        return super().cuts() | (set(self._layout.cuts(rows)) if has_cuts else set())

    def part(self, first: int, end: int) -> Any:
        selection = self._selection
        item = self._layout.dtype.itemsize
        strides = tuple(stride * item for stride in selection.inner_strides)
        if 0 in self.shape:
            return self._empty()
        if not selection.keeps_rows:
            place = self._layout.place(selection.rows[0]) + selection.inner_offset
            return (place + (first * selection.inner_strides[0] if self.shape else 0), strides)
        place = self._layout.place(selection.rows[first]) + selection.inner_offset
        return (place, (selection.rows.step * self._layout.row_items * item, *strides))

    def _empty(self) -> Any:
        """No elements, on the rank that has the row where they begin."""
        last = self._layout.shape[0] - 1
        place = self._layout.place(max(0, min(self._selection.rows.start, last)))
        return (place, (0,) * len(self.shape))


def transfer(source: Side, target: Side, result: Any, reports: Reports, use: str) -> _core.Operation[Any]:
    """Starts the copy, whose operation gives `result`. REQUIRES: both have the same shape.

    Errors begin with `use`. A copy of no elements is one piece if there is something to report.
    """
    shape = source.shape
    pieces: list[tuple[Any, ...]] = []
    if not shape:
        pieces = [(source.part(0, 0), target.part(0, 0), ())]
    elif 0 in shape:
        if any(report is not None for report in reports):
            pieces = [(source.part(0, shape[0]), target.part(0, shape[0]), shape)]
    else:
        cuts = sorted(source.cuts() | target.cuts())
        pieces = [
            (source.part(first, end), target.part(first, end), (end - first, *shape[1:]))
            for first, end in itertools.pairwise(cuts)
        ]
    return _core._copy_strided_pieces(pieces, result, *reports, use)
