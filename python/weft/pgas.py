"""PGAS programs: one main on every PE, memory that all PEs reach, teams of PEs, calls of functions and
distributed objects.

    import weft
    import weft.pgas

    def add(a, b):
        return a + b

    async def main(world):
        next_rank = (world.rank + 1) % world.size
        print(await world.rpc(next_rank, add, world.rank, 100))
        print(await world.allreduce(world.rank, weft.Reducer.sum))

    weft.pgas.run(main)

``weft run -n 4 app.py`` runs main on four PEs.

Memory that all PEs reach, in programs of `run` and of weft.run alike:

    array = await weft.pgas.make_array((1000, 8), kind="cuda")   # collective: each PE has a block of the rows
    block = await array.get(slice(0, 10))                        # from whichever PEs have these rows
    await array.put((5, 3), 1.0)

    segment = weft.pgas.make_segment(100, "int64")               # of this PE alone
    pointer = segment.pointer()                                  # travels to any PE
    before = await weft.pgas.fetch_add(pointer + 7, 1)

All operations return a weft.Operation. One that is over at once, as each on host memory of the same host, is
awaited without a turn of the scheduler. Operations are not ordered among each other: await the first if the
second must come later. If nothing awaits a failed operation, the job ends with its error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from weft import _core
from weft._core import (
    DeviceGroup,
    DistObject,
    GlobalPointer,
    Segment,
    Team,
    atomic_load,
    atomic_store,
    compare_exchange,
    copy_on_stream,
    exchange,
    fetch_add,
    fetch_and,
    fetch_or,
    fetch_xor,
    get,
    make_segment,
    make_segment_at,
    put,
    signal_on_stream,
    wait_for,
    wait_on_stream,
)
from weft._job.run import is_import_of_multiprocessing, run_with
from weft._pgas.global_array import GlobalArray, GlobalSlice
from weft._pgas.global_array import copy as _copy_slices
from weft._pgas.global_array import make_array as _make_array
from weft._pgas.peer_addresses import PeerAddresses, peer_addresses
from weft._public import name_public_module as _name_public_module

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "DeviceGroup",
    "DistObject",
    "GlobalArray",
    "GlobalPointer",
    "GlobalSlice",
    "PeerAddresses",
    "Segment",
    "Team",
    "atomic_load",
    "atomic_store",
    "compare_exchange",
    "copy",
    "copy_indexed",
    "copy_on_stream",
    "copy_strided",
    "exchange",
    "fetch_add",
    "fetch_and",
    "fetch_or",
    "fetch_xor",
    "get",
    "make_array",
    "make_segment",
    "make_segment_at",
    "peer_addresses",
    "put",
    "run",
    "signal_on_stream",
    "wait_for",
    "wait_on_stream",
    "world",
]

_T = TypeVar("_T")


@overload
def run(main: Callable[[Team], Coroutine[Any, Any, _T]]) -> _T | None: ...
@overload
def run(main: Callable[[Team], _T]) -> _T | None: ...
def run(main: Callable[[Team], Any]) -> Any:
    """Runs a job: collective over its PEs, each of which calls it once with the same `main`.

    ``main(world)`` runs on every PE. The job ends when it has returned on all of them and no message is under
    way, so calls that were sent before are run.

    Args:
        main: a function of one argument, the team of all PEs; as a rule an ``async def``.

    Returns:
        What main returned on this PE.

    Raises:
        SystemExit, KeyboardInterrupt, weft.Error: as weft.run.
    """
    if not callable(main):
        raise _core.Error(
            f"weft.pgas.run takes the function main, not a {type(main).__name__}; write weft.pgas.run(main)"
        )

    if is_import_of_multiprocessing():
        return None

    async def whole() -> Any:
        result = main(world())
        if inspect.iscoroutine(result):
            result = await result
        await world().barrier()
        if world().rank == 0:
            await _core.quiescence()
            _core.exit(0)
        return result

    return run_with(_core._run_on_all, whole)


def world() -> Team:
    """The team of all PEs; for functions that other PEs call.

    Raises:
        weft.Error: no job is running.
    """
    return _core._world()


async def make_array(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike = "float64",
    *,
    kind: str = "host",
    team: Team | None = None,
) -> GlobalArray:
    """Collective: makes an array whose rows lie on the PEs of a team, in blocks of equal size; the last ones
    may have fewer.

    All members call it in the same order as their other collective operations, from `run` or from chares. The
    main of weft.run runs on PE 0 alone: if it waits for ever, a sentence says so after 5 s.
    Host memory is filled with zeros, device memory is not.

    Args:
        shape: an int or a sequence of ints, the same on all ranks.
        dtype: as numpy.dtype takes it, the same on all ranks.
        kind: where this rank's block lies, as make_segment() takes it. Ranks may give different kinds.
        team: its members have the rows, in the order of their ranks; by default all PEs.

    Returns:
        the array. It owns the block of this rank, which is freed when it is dropped.

    Raises:
        weft.Error: on all ranks, if one of them has not enough memory, or if they ask for different arrays.
    """
    return await _make_array(shape, dtype, kind, world() if team is None else team)


def copy(
    src: Any,
    dst: Any,
    count: int | None = None,
    *,
    source: _core.Future[None] | None = None,
    remote: Callable[..., object] | tuple[Any, ...] | None = None,
    stream: Any = None,
) -> _core.Operation[Any]:
    """Copies between any two places: memory of any PE and of any kind. Neither end needs to be this PE's.

    Args:
        src: a GlobalPointer, ``array[key]`` of a GlobalArray, or an array of this PE in memory of any kind.
            NumPy arrays may have any strides; arrays of other libraries are contiguous.
        dst: the same; not read-only. It must not overlap `src`.
        count: the number of elements; by default those of the array or of the part, and 1 between two
            pointers.
        source: a weft.Future, which is set when the source may be overwritten, or to the error if the copy
            fails before that. Each copy takes one of its own.
        remote: a function, or a tuple of a function and its arguments. It runs on the PE of the target after
            the data is visible there, as a function of Team.rpc_ff() does.
        stream: the copy starts after the work that is queued on this stream, for device memory of this PE.
            The streams that arrays name count by themselves.

    Returns:
        a weft.Operation of `dst` if that is an array, else of None. It is over when the data is visible at
        the target, and keeps the arrays alive until then.

    Raises:
        weft.Error: the ends differ in type or shape, or an array cannot be used. The call or the await raises
            it if a pointer leads to memory outside of its segment. Nothing outside of a segment is ever
            written.
    """
    if isinstance(src, (GlobalSlice, GlobalArray)) or isinstance(dst, (GlobalSlice, GlobalArray)):
        return _copy_slices(src, dst, count, (source, remote, stream))
    return _core._copy(src, dst, count, source, remote, stream)


def copy_strided(
    src: Any,
    src_strides: Sequence[int] | None,
    dst: Any,
    dst_strides: Sequence[int] | None,
    shape: int | Sequence[int],
    *,
    source: _core.Future[None] | None = None,
    remote: Callable[..., object] | tuple[Any, ...] | None = None,
    stream: Any = None,
) -> _core.Operation[Any]:
    """Copies elements with equal distances in each of several dimensions.

    Args:
        src: a GlobalPointer, or an array of that shape.
        src_strides: of a pointer, in bytes, one for each dimension; they may be negative. None for an array.
        dst: as `src`. Its elements must not overlap.
        dst_strides: as `src_strides`.
        shape: the number of elements in each dimension.
        source, remote, stream: as copy().

    Returns:
        as copy().

    Raises:
        weft.Error: as copy().
    """
    pieces = [(_with_strides(src, src_strides), _with_strides(dst, dst_strides), shape)]
    return _core._copy_strided_pieces(pieces, _result(dst), source, remote, stream)


def copy_indexed(
    src: Any,
    src_indices: Sequence[int],
    dst: Any,
    dst_indices: Sequence[int],
    block: int = 1,
    *,
    source: _core.Future[None] | None = None,
    remote: Callable[..., object] | tuple[Any, ...] | None = None,
    stream: Any = None,
) -> _core.Operation[Any]:
    """Copies blocks of elements: number i from ``src + src_indices[i]`` to ``dst + dst_indices[i]``.

    Args:
        src: a GlobalPointer, or a contiguous array.
        src_indices: places in elements; of an array in C order.
        dst: as `src`. Its blocks must not overlap.
        dst_indices: as many as `src_indices`.
        block: elements of a block.
        source, remote, stream: as copy().

    Returns:
        as copy().

    Raises:
        weft.Error: as copy(); a block that is not inside of an array.
    """
    pieces = [(src, src_indices, dst, dst_indices, block)]
    return _core._copy_indexed_pieces(pieces, _result(dst), source, remote, stream)


def _with_strides(end: Any, strides: Sequence[int] | None) -> Any:
    return end if strides is None else (end, strides)


def _result(dst: Any) -> Any:
    return None if isinstance(dst, GlobalPointer) else dst


_name_public_module(__name__, [globals()[name] for name in __all__])
