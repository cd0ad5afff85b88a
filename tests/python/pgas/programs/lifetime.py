"""How long buffers, segments and views live; `argv[1]` is the kind of the memory."""

import array as plain_array
import gc
import mmap
import pickle
import sys
import weakref

import numpy as np

import weft
import weft.emulated
import weft.pgas as pgas

KIND = sys.argv[1]
kept_view = None


class Watched(np.ndarray):
    """An array that can be watched."""


def watched(count: int) -> tuple[np.ndarray, weakref.ref]:
    array = np.arange(float(count)).view(Watched)
    return array, weakref.ref(array)


async def buffers_of_operations(to: pgas.GlobalPointer) -> None:
    """A buffer in flight stays, also if the program drops it and the operation."""
    if KIND == "emulated":
        weft.emulated.set_faults(polls_per_copy=50)
    array, reference = watched(500)
    operation = pgas.put(array, to)
    was_over = operation.done()
    del array
    gc.collect()
    assert (reference() is None) == was_over, "the buffer of a put in flight was dropped"
    await operation
    del operation
    gc.collect()
    assert reference() is None, "the buffer of a put that is over is kept"
    assert ((await pgas.get(to, 500)) == np.arange(500)).all()
    pgas.put(np.full(500, 2.0), to)  # the operation is dropped too
    pgas.get(to, out=np.zeros(500))
    gc.collect()
    while (await pgas.get(to + 499)) != 2.0:
        await weft.yield_now()
    got = await pgas.get(to, 500)
    assert (got == 2).all()
    if KIND == "emulated":
        weft.emulated.set_faults()


async def refused(operation) -> str:
    try:
        await operation
    except weft.Error as error:
        return error.code
    return "no error"


async def freed_segments(world: pgas.Team) -> None:
    segment = pgas.make_segment(8, "f8", KIND)
    pointers = await world.allgather(segment.pointer())
    other = pointers[(world.rank + 1) % world.size]
    await pgas.put(1.0, other)
    await world.barrier()
    released = segment.release()
    assert await refused(_later(lambda: pgas.put(1.0, segment.pointer()))) == "not found"
    await released
    for wrong in (lambda: segment.local, segment.release, segment.publish):
        try:
            wrong()
        except weft.Error as error:
            assert error.code in ("not found", "invalid argument"), error.code
            continue
        raise AssertionError("not refused")
    await world.barrier()
    assert await refused(_later(lambda: pgas.get(other))) == "not found"
    # One that is dropped is freed too.
    dropped = pgas.make_segment(8, "f8", KIND)
    pointer = dropped.pointer()
    del dropped
    gc.collect()
    assert await refused(_later(lambda: pgas.get(pointer))) == "not found"


async def _later(start):
    return await start()


async def views_keep_memory(world: pgas.Team) -> None:
    segment = pgas.make_segment(8, "i8", KIND)
    pointers = await world.allgather(segment.pointer())
    view = segment.local
    if KIND == "host":
        view[:] = 5
    theirs = pointers[(world.rank + 1) % world.size]
    await theirs.learn()
    mapped = theirs.mapped(8)
    await world.barrier()
    released = segment.release()
    for _ in range(20):
        await weft.yield_now()
    assert not released.done(), "a view uses the memory"
    if KIND == "host":
        assert view.tolist() == [5] * 8
        # Memory that is made meanwhile is other memory.
        others = [pgas.make_segment(8, "i8") for _ in range(4)]
        assert not any(np.shares_memory(view, other.local) for other in others)
        if mapped is not None:
            assert mapped.tolist() == [5] * 8
    await world.barrier()
    del view, mapped
    gc.collect()
    await released


async def memory_of_the_program(world: pgas.Team) -> None:
    if KIND != "host":
        array = weft.DeviceArray(6, "f8", KIND)
        segment = pgas.make_segment_at(array)
        assert segment.local is array
        await pgas.put(np.arange(6.0), segment.pointer())
        assert (await array.to_host()).tolist() == [0, 1, 2, 3, 4, 5]
        await segment.release()
        return
    array, reference = watched(6)
    segment = pgas.make_segment_at(array)
    pointers = await world.allgather(segment.pointer())
    other = pointers[(world.rank + 1) % world.size]
    await pgas.put(7.5, other + 2)
    await world.barrier()
    assert segment.local is array and array[2] == 7.5
    await world.barrier()
    del array
    assert reference() is not None, "the segment keeps the array"
    await segment.release()
    gc.collect()
    assert reference() is None, "a segment that was released keeps the array"
    # Dropped without release().
    array, reference = watched(6)
    segment = pgas.make_segment_at(array)
    del array, segment
    gc.collect()
    while reference() is not None:
        await weft.yield_now()


async def buffers_of_the_program() -> None:
    """A buffer that a segment lies over stays where it is until no PE uses the segment."""

    def grow(buffer) -> bool:
        try:
            if isinstance(buffer, mmap.mmap):
                buffer.resize(1 << 16)
            else:
                buffer.extend(buffer[:8])
        except BufferError:
            return False
        return True

    for make in (
        lambda: bytearray(64),
        lambda: plain_array.array("d", [0.0] * 8),
        lambda: mmap.mmap(-1, 4096),
    ):
        buffer = make()
        segment = pgas.make_segment_at(buffer)
        assert segment.local is buffer
        assert not grow(buffer), f"a {type(buffer).__name__} under a segment was resized"
        await pgas.put(np.full(8, 65, "u1"), segment.pointer().cast("u1"))
        assert bytes(memoryview(buffer))[:9] == b"A" * 8 + b"\0"
        released = segment.release()
        assert released.done() or not grow(buffer)
        await released
        assert grow(buffer), f"a {type(buffer).__name__} is kept after its segment"
        segment = pgas.make_segment_at(buffer)
        del segment
        while not grow(buffer):
            await weft.yield_now()


async def cycles() -> None:
    """A segment that its own array refers to is freed by a garbage collection, and then lets the array go."""
    array, reference = watched(6)
    array.segment = pgas.make_segment_at(array)
    pointer = array.segment.pointer()
    await pgas.put(1.0, pointer)
    del array
    gc.collect()
    while reference() is not None:
        await weft.yield_now()
    assert await refused(_later(lambda: pgas.get(pointer))) == "not found"


async def global_arrays(world: pgas.Team) -> None:
    array = await pgas.make_array((4 * world.size, 2), "i8", kind=KIND)
    await array.put(slice(4 * world.rank, 4 * world.rank + 4), world.rank)
    await world.barrier()
    assert (await array.get((-1, -1))) == world.size - 1
    part = array[0]
    begun = [array.get() for _ in range(3)]
    await array.release()
    for operation in begun:
        assert (await operation).shape == array.shape
    # The first operations on an array, which all ranks know from the beginning.
    unused = await pgas.make_array((4, 5000), kind=KIND)
    begun = [unused.get() for _ in range(3)]
    await unused.release()
    for operation in begun:
        assert (await operation).shape == (4, 5000)
    await world.barrier()
    for use in (
        lambda: array.get(0),
        lambda: array.get((0, 0)),
        lambda: array.put(0, 1),
        lambda: array.put((0, 0), 1),
        lambda: array.fetch_add((0, 0), 1),
        lambda: array.pointer((0, 0)),
        lambda: array[0:0],
        lambda: array.local,
        lambda: pgas.copy(part, np.zeros(2, "i8")),
        lambda: pgas.copy(np.zeros(array.shape, "i8"), array),
    ):
        assert await refused(_later(use)) == "not found"
    assert await refused(_later(array.release)) != "no error"


async def all_blocks_are_freed(world: pgas.Team) -> None:
    """After an await of release(), no array that came as an argument reaches a block of any rank."""
    for _ in range(100):
        array = await pgas.make_array(2 * world.size, "i8", kind=KIND)
        named = pickle.loads(pickle.dumps(array))
        await named.get()
        await world.barrier()
        await array.release()
        for place in range(2 * world.size):
            assert await refused(_later(lambda at=place, to=named: to.put(at, 77))) == "not found"


async def main(world: pgas.Team) -> None:
    global kept_view
    segment = pgas.make_segment(1000, "f8", KIND)
    pointers = await world.allgather(segment.pointer())
    for rank in range(world.size):
        if rank == world.rank:
            await buffers_of_operations(pointers[(rank + 1) % world.size])
        await world.barrier()
    await freed_segments(world)
    await views_keep_memory(world)
    await memory_of_the_program(world)
    await buffers_of_the_program()
    await cycles()
    await global_arrays(world)
    await all_blocks_are_freed(world)
    kept_view = segment.local
    if KIND == "host":
        kept_view[:] = 3
    await world.barrier()
    return world.rank


rank = weft.pgas.run(main)
# The job has ended; host memory that a view keeps has not.
if KIND == "host":
    assert (kept_view == 3).all()
    kept_view[:] = 4
late = kept_view
del kept_view, late
gc.collect()
try:
    pgas.make_segment(3)
except weft.Error:
    pass
else:
    raise AssertionError("a segment without a job")
if rank == 0:
    print("all checked")
