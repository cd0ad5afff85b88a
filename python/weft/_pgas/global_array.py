"""GlobalArray: an array over the memory of all PEs of a team, and the places that its slices name.

An array is cut into blocks of rows, one for each rank. A row is all elements of one index of the first axis.
A block lies in a segment of its rank, in C order.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft import _core
from weft._pgas.array_selection import Selection, element_of, select
from weft._pgas.array_sides import (
    NO_REPORTS,
    ArraySide,
    Layout,
    PointerSide,
    Reports,
    SelectionSide,
    transfer,
)
from weft._pgas.array_values import converted
from weft._pgas.elsewhere import Elsewhere

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


# The names of the operations in errors.
_GET, _PUT, _COPY = "weft.pgas.GlobalArray.get", "weft.pgas.GlobalArray.put", "weft.pgas.copy"


class GlobalArray(Elsewhere):
    """An array whose rows lie in the memory of the PEs of a team; `make_array` makes it.

    Rank r has the rows ``array.rows(r)``, in host or device memory. Any PE reads and writes any part: no
    other PE takes part in it. Indices are those of NumPy: ints, slices, ``...``, and a list or an array of
    row numbers.

    An array travels as an argument: what arrives names the same memory. The memory lives as long as the
    arrays that `make_array` gave, each of which owns the block of its rank. Have a barrier before one is
    dropped, or use `release`.
    """

    __slots__ = ("_layout", "_segment", "_team")

    def __init__(
        self,
        shape: tuple[int, ...],
        pointers: list[_core.GlobalPointer],
        segment: _core.Segment | None = None,
        team: _core.Team | None = None,
    ) -> None:
        """For pickle; programs call make_array()."""
        self._layout = Layout(shape, pointers)
        self._segment = segment
        self._team = team

    def __reduce__(self) -> tuple[Any, ...]:
        return (GlobalArray, (self._layout.shape, self._layout.pointers))

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the whole array."""
        return self._layout.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._layout.dtype

    @property
    def ndim(self) -> int:
        """The number of axes, at least 1."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size in bytes of all elements."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        ranks = len(self._layout.pointers)
        return f"<weft.pgas.GlobalArray of {self.dtype}, shape {self.shape}, on {ranks} PEs>"

    def rows(self, rank: int) -> range:
        """The rows of a rank of the array's team.

        Raises:
            weft.Error: there is no such rank.
        """
        ranks = len(self._layout.pointers)
        if not 0 <= rank < ranks:
            raise _core.Error(f"{self} has ranks 0 to {ranks - 1}, and no rank {rank}")
        return self._layout.rows(rank)

    @property
    def local(self) -> Any:
        """The rows of this PE as an array over the memory itself; nothing is copied.

        It is a NumPy array, or a weft.DeviceArray for device memory. Other PEs read and write the memory too;
        a barrier orders their work and this PE's. The array keeps the block's memory.

        Raises:
            weft.Error: this PE has no rank in the array's team, or the array was released.
        """
        self._layout.expect_live()
        pe = _core.my_pe()
        for rank, pointer in enumerate(self._layout.pointers):
            if pointer.pe == pe:
                return pointer.local((len(self.rows(rank)), *self.shape[1:]))
        raise _core.Error(f"PE {pe} has no part of {self}: it is no member of its team")

    def pointer(self, index: int | Sequence[int]) -> _core.GlobalPointer:
        """A global pointer to an element, for atomic operations and `weft.pgas.copy`.

        Args:
            index: an int for each axis; a single int in one dimension. Negative ones count from the end.

        Raises:
            weft.Error: there is no such element.
        """
        key = tuple(index) if isinstance(index, Sequence) else (index,)
        element = element_of(self.shape, key)
        if element is None:
            raise _core.Error(f"{self} has no element {index}: give one int for each axis")
        return self._layout.place(element[0]) + element[1]

    def __getitem__(self, key: Any) -> GlobalSlice:
        """Names a part of the array for `weft.pgas.copy`; nothing is read."""
        self._layout.expect_live()
        return GlobalSlice(self, self._layout, select(self.shape, key))

    def get(self, key: Any = ..., out: Any = None) -> _core.Operation[Any]:
        """Reads a part of the array.

        Args:
            key: as an index of NumPy.
            out: the array to read into: writable, of the array's type and the part's shape, in memory of any
                kind; contiguous if `key` is a list of rows. None for a new NumPy array. It belongs to the
                operation until that is over.

        Returns:
            a weft.Operation of the array; of a number if the key names one element and there is no `out`.

        Raises:
            weft.Error: there are no such elements, or `out` does not fit. Nothing is read then.
        """
        if out is None:
            element = element_of(self.shape, key if isinstance(key, tuple) else (key,))
            if element is not None:
                return _core.get(self._layout.place(element[0]) + element[1])
        return self[key]._get(out, NO_REPORTS, _GET)

    def put(self, key: Any, values: Any) -> _core.Operation[None]:
        """Writes a part of the array.

        Args:
            key: as an index of NumPy.
            values: an array of the array's type, in memory of any kind, which stays unchanged until the
                operation is over. A NumPy array, a list or a number is broadcast to the part's shape.
                Numbers, texts, lists, and tuples for records, are converted. Values that the type does not
                hold are refused; only a float is rounded.

        Returns:
            a weft.Operation of None, which is over when the data is visible to all PEs.

        Raises:
            weft.Error: there are no such elements, or the values do not fit. Nothing is written then.
        """
        if isinstance(values, (int, float)) and self._layout.takes_numbers:
            element = element_of(self.shape, key if isinstance(key, tuple) else (key,))
            if element is not None:
                return _core.put(values, self._layout.place(element[0]) + element[1])
        return self[key]._put(values, NO_REPORTS, _PUT)

    def fetch_add(self, index: int | Sequence[int], value: float) -> _core.Operation[Any]:
        """Adds to an element as one atomic operation: weft.pgas.fetch_add(array.pointer(index), value)."""
        return _core.fetch_add(self.pointer(index), value)

    async def release(self) -> None:
        """Collective: frees the array when all ranks have called it.

        Uses of this object are errors from the call on. When the await is over, all blocks are freed. Then
        uses of arrays that came as arguments, and of pointers, are errors too; on another host than the
        block's, operations may still reach the old memory until the notice has arrived there. No operation
        reaches memory that was reused.

        A rank awaits its operations before. One that a rank has begun without knowing the segment of the
        other rank fails if it comes too late.

        Raises:
            weft.Error: this array came as an argument: only one that make_array() gave owns memory.
        """
        if self._segment is None or self._team is None:
            raise _core.Error(
                f"{self} owns no memory here: make_array() gave the one that does, or it was released before"
            )
        segment, team = self._segment, self._team
        self._segment = self._team = None
        self._layout.is_released = True
        await team.barrier()
        segment.release()
        await team.barrier()


class GlobalSlice(Elsewhere):
    """A part of a GlobalArray, ``array[key]``, as an end of `weft.pgas.copy`."""

    __slots__ = ("_array", "_layout", "_selection")

    def __init__(self, array: GlobalArray, layout: Layout, selection: Selection) -> None:
        self._array = array  # keeps the memory
        self._layout = layout
        self._selection = selection

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the part."""
        return self._selection.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._layout.dtype

    # A comparison or a truth value would be that of this object, not of the elements.
    __getitem__ = __eq__ = __ne__ = __bool__ = Elsewhere._refuse
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<the part {self._selection}, of shape {self.shape}, of {self._array}>"

    def _side(self) -> SelectionSide:
        if self._selection.row_list is None:
            return SelectionSide(self._layout, self._selection)
        raise _core.Error(
            f"weft.pgas.copy takes {self}, a list of rows, only against an array of this PE; copy slices, or "
            "get() the rows"
        )

    def _get(self, out: Any, reports: Reports, use: str) -> _core.Operation[Any]:
        selection = self._selection
        if out is None:
            if not self.shape:
                return _core.get(self._layout.place(selection.rows[0]) + selection.inner_offset)
            import numpy as np

            out = np.empty(self.shape, self.dtype)
        _expect_shape(self, out)
        rows = selection.row_list
        if rows is None or 0 in self.shape:
            return transfer(SelectionSide(self._layout, selection), ArraySide(out), out, reports, use)
        pieces = [
            (pointer, elements, out, positions, self._layout.row_items)
            for pointer, elements, positions in self._layout.places_of(rows)
        ]
        return _core._copy_indexed_pieces(pieces, out, *reports, use)

    def _put(self, values: Any, reports: Reports, use: str) -> _core.Operation[None]:
        selection = self._selection
        values = _as_source(values, self)
        rows = selection.row_list
        if rows is None or 0 in self.shape:
            return transfer(ArraySide(values), SelectionSide(self._layout, selection), None, reports, use)
        pieces = [
            (values, positions, pointer, elements, self._layout.row_items)
            for pointer, elements, positions in self._layout.places_of(rows)
        ]
        return _core._copy_indexed_pieces(pieces, None, *reports, use)


def _expect_shape(part: GlobalSlice, array: Any) -> None:
    shape = getattr(array, "shape", None)
    if shape is None:
        raise _core.Error(f"{part} does not fit a {type(array).__name__}, which has no shape")
    if tuple(shape) != part.shape:
        raise _core.Error(f"{part} does not fit an array of shape {tuple(shape)}")


def _as_source(values: Any, part: GlobalSlice) -> Any:
    """An array of the part's shape. Arrays stay what they are; numbers, texts and lists are converted."""
    import numpy as np

    is_array = isinstance(values, np.ndarray)
    if hasattr(values, "shape") and not is_array and not isinstance(values, np.generic):
        _expect_shape(part, values)
        return values
    if not is_array:
        values = converted(values, part.dtype, str(part))
    try:
        values = np.broadcast_to(values, part.shape)
    except ValueError:
        raise _core.Error(f"{part} does not fit values of shape {np.shape(values)}") from None
    is_repeated = 0 in values.strides
    return np.ascontiguousarray(values) if is_repeated or part._selection.row_list is not None else values


def copy(src: Any, dst: Any, count: int | None, reports: Reports) -> _core.Operation[Any]:
    """weft.pgas.copy, of which at least one end is a GlobalSlice or a GlobalArray."""
    source, target = (end[...] if isinstance(end, GlobalArray) else end for end in (src, dst))
    part: GlobalSlice = source if isinstance(source, GlobalSlice) else target
    if count is not None and count != math.prod(part.shape):
        raise _core.Error(
            f"weft.pgas.copy got {count} elements to copy and {part}; name elements by an index"
        )
    if isinstance(source, GlobalSlice) and isinstance(target, GlobalSlice):
        if source.shape != target.shape:
            raise _core.Error(f"{source} does not fit {target}")
        from_side, to_side = source._side(), target._side()
        if from_side.meets(to_side):
            raise _core.Error(
                f"weft.pgas.copy got {source} and {target}, which overlap: copy to other memory first"
            )
        return transfer(from_side, to_side, None, reports, _COPY)
    if isinstance(target, _core.GlobalPointer):
        return transfer(part._side(), PointerSide(target, part.shape), None, reports, _COPY)
    if isinstance(source, _core.GlobalPointer):
        return transfer(PointerSide(source, part.shape), part._side(), None, reports, _COPY)
    if isinstance(source, GlobalSlice):
        return part._get(target, reports, _COPY)
    return part._put(source, reports, _COPY)


async def make_array(
    shape: int | Sequence[int], dtype: npt.DTypeLike, kind: str, team: _core.Team
) -> GlobalArray:
    """weft.pgas.make_array."""
    extents: tuple[int, ...] = ()
    segment: _core.Segment | None = None
    why = ""
    try:
        extents = _extents_of(shape)
        segment = _make_block(extents, dtype, kind, team)
        segment.publish()
    except _core.Error as error:
        why = str(error)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    # All ranks learn of a failure of one, which would leave the others waiting.
    mine: tuple[Any, ...] = (why, extents, None if segment is None else segment.pointer())
    everywhere = await team.allgather(mine)
    failed = [f"rank {rank}: {theirs[0]}" for rank, theirs in enumerate(everywhere) if theirs[0]]
    if failed:
        raise _core.Error(f"a global array of shape {shape} cannot be made: {'; '.join(failed)}")
    pointers: list[_core.GlobalPointer] = [theirs[2] for theirs in everywhere]
    first_dtype, first_extents = pointers[0].dtype, everywhere[0][1]
    for rank, (_, their_extents, their_pointer) in enumerate(everywhere):
        if their_extents != first_extents or their_pointer.dtype != first_dtype:
            raise _core.Error(
                f"make_array is collective: rank 0 asks for {first_dtype} of shape {first_extents}, and rank "
                f"{rank} for {their_pointer.dtype} of shape {their_extents}"
            )
    # The published blocks may become known later than the pointers: messages of a pair are in no order. A
    # rank may drop its block at once, which a use of the block will say.
    for pointer in pointers:
        with contextlib.suppress(_core.Error):
            await pointer.learn()
    return GlobalArray(extents, pointers, segment, team)


def _extents_of(shape: Any) -> tuple[int, ...]:
    try:
        return tuple(map(operator.index, shape if hasattr(shape, "__iter__") else (shape,)))
    except TypeError as error:
        raise _core.Error(f"{shape!r} is no shape of an array: {error}") from None


def _make_block(extents: tuple[int, ...], dtype: npt.DTypeLike, kind: str, team: _core.Team) -> _core.Segment:
    if not extents or min(extents) < 0:
        raise _core.Error(f"{extents} is no shape of an array: give extents, of which none is negative")
    block = max(1, -(-extents[0] // team.size))
    rows = min(max(extents[0] - team.rank * block, 0), block)
    return _core.make_segment(max(1, rows * math.prod(extents[1:])), dtype, kind)
