"""weft.pgas.GlobalArray against NumPy; `argv[1]` is the kind of the memory."""

import itertools
import pickle
import sys

import numpy as np

import weft
import weft.pgas as pgas

KIND = sys.argv[1]

ROWS = (
    slice(None),
    slice(2, 9),
    slice(None, None, -1),
    slice(9, 1, -3),
    slice(5, 5),
    slice(1, None, 4),
    0,
    -1,
    6,
)
COLUMNS = (slice(None), slice(3, 0, -1), slice(0, 4, 2), 2, -3, slice(2, 2))


async def against_numpy(array: pgas.GlobalArray, model: np.ndarray) -> None:
    for key in itertools.product(ROWS, COLUMNS):
        got = await array.get(key)
        assert np.array_equal(got, model[key]), (key, got, model[key])
        shape = np.shape(model[key])
        values = np.random.default_rng(3).integers(0, 1000, shape).astype(model.dtype)
        await array.put(key, values if shape else int(values))
        model[key] = values
    assert np.array_equal(await array.get(), model)
    for key in ([3, 0, 9, 3], np.array([8, 1]), [], [-1, -10], np.arange(10) % 3 == 0, ([0, 9], slice(None))):
        assert np.array_equal(await array.get(key), model[key]), key
    await array.put([7, 1], [[1, 2, 3, 4], [5, 6, 7, 8]])
    model[[7, 1]] = [[1, 2, 3, 4], [5, 6, 7, 8]]
    await array.put((slice(0, 6), 1), -7)
    model[0:6, 1] = -7
    await array.put((slice(1, 9, 2), ...), model[0])
    model[1:9:2] = model[0].copy()
    fortran = np.zeros((4, 10), model.dtype).T
    assert await array.get(out=fortran) is fortran and np.array_equal(fortran, model)
    large = np.zeros((20, 8), model.dtype)
    await array.get(out=large[::2, ::2])
    assert np.array_equal(large[::2, ::2], model) and not large[1::2].any()


async def between_parts(array: pgas.GlobalArray, model: np.ndarray) -> None:
    other = await pgas.make_array((4, 7, 2), model.dtype, team=array_team, kind="host")
    if weft.my_pe() == 0:
        await other.put(..., 0)
        copy = np.zeros((4, 7, 2), model.dtype)
        await pgas.copy(array[1:8, 0:2], other[2])
        copy[2] = model[1:8, 0:2]
        await pgas.copy(array[::-3, 1], other[:, 3, 1])
        copy[:, 3, 1] = model[::-3, 1]
        await pgas.copy(other[1:3, ::2, 0], array[0:2])
        model[0:2] = copy[1:3, ::2, 0]
        await pgas.copy(array[3, 0], other[0, 0, 0])
        copy[0, 0, 0] = model[3, 0]
        assert np.array_equal(await other.get(), copy) and np.array_equal(await array.get(), model)
        # Against pointers and arrays.
        segment = pgas.make_segment(12, model.dtype)
        await pgas.copy(array[4:7], segment.pointer())
        assert np.array_equal(segment.local, model[4:7].ravel())
        await pgas.copy(segment.pointer(), array[2:8:2])
        model[2:8:2] = segment.local.reshape(3, 4)
        whole = np.zeros_like(model)
        assert await pgas.copy(array, whole) is whole and np.array_equal(whole, model)
        await pgas.copy(whole[:, 0], array[:, 3])
        model[:, 3] = whole[:, 0]
        device = weft.DeviceArray((10, 4), model.dtype, "emulated" if KIND == "host" else KIND)
        assert await pgas.copy(array, device) is device
        assert np.array_equal(await device.to_host(), model)
        await array.put(slice(1, 9), device[2:10])
        model[1:9] = model[2:10].copy()
        assert np.array_equal(await array.get(), model)
    await array_team.barrier()  # the others' parts of `other` stay until here


class Reader(weft.Chare):
    async def total(self, array):
        assert self.index != 0 or len(array.local) == len(array.rows(0))
        await array.fetch_add((0, 0), 1)
        return int((await array.get((slice(None), 0))).sum())


async def shapes(world: pgas.Team) -> None:
    small = await pgas.make_array((np.int64(4), np.int8(2)), "i8", kind=KIND)
    assert small.shape == (4, 2) and all(type(extent) is int for extent in small.shape)
    assert (await pgas.make_array(np.int64(4), kind=KIND)).shape == (4,)
    assert (await pgas.make_array(np.array([4, 2]), kind=KIND)).shape == (4, 2)
    await world.barrier()
    if world.rank == 0:
        place = (np.int64(3), np.uint8(1))
        assert small.pointer(place) == small.pointer((3, 1))
        await small.put(place, np.int32(5))
        await small.fetch_add(place, 1)
        assert await small.get(place) == 6
    await world.barrier()
    few = await pgas.make_array(2, "f4", kind=KIND)  # some ranks have no rows
    assert (few.shape, few.ndim, few.size, few.nbytes, len(few)) == ((2,), 1, 2, 8, 2)
    assert few.local.shape == (len(few.rows(world.rank)),)
    empty = await pgas.make_array((0, 3), "f4", kind=KIND)
    assert (await empty.get()).shape == (0, 3) and empty.local.shape == (0, 3)
    await world.barrier()
    if world.rank == 0:
        await few.put(..., [1, 2])
        assert (await few.get()).tolist() == [1, 2] and await few.get(-1) == 2
        assert await few.fetch_add(1, 0.5) == 2 and await few.get(1) == 2.5
    await world.barrier()


async def on_a_part_of_the_pes(world: pgas.Team) -> None:
    parity = await world.split(world.rank % 2)
    array = await pgas.make_array((5, 2), "i8", kind=KIND, team=parity)
    await parity.barrier()
    if parity.rank == 0:
        await array.put(..., world.rank)
        assert (await array.get() == world.rank).all()
        assert {array.pointer((row, 0)).pe for row in range(5)} == set(parity.members()[:5])
    await parity.barrier()


async def main(world: pgas.Team) -> None:
    global array_team
    array_team = world
    array = await pgas.make_array((10, 4), "i8", kind=KIND)
    if KIND == "host":
        assert not array.local.any()
        array.local[...] = world.rank
    else:
        await array.local.copy_from(np.full(array.local.shape, world.rank))
    await world.barrier()
    model = np.zeros((10, 4), "i8")
    for rank in range(world.size):
        model[array.rows(rank)] = rank
    assert np.array_equal(await array.get(), model)
    await world.barrier()
    if world.rank == 0:
        await against_numpy(array, model)
    await between_parts(array, model)
    await world.barrier()
    theirs = pickle.loads(pickle.dumps(array))
    assert np.array_equal(
        theirs.local if KIND == "host" else await theirs.local.to_host(), await array.get(array_rows(array))
    )
    await world.barrier()
    if world.rank == 0:
        readers = weft.Group(Reader)
        before = int(model[:, 0].sum())
        totals = await readers.total.call(array)
        assert max(totals) == before + world.size and min(totals) > before, (totals, before)
    await shapes(world)
    await on_a_part_of_the_pes(world)
    await array.release()
    if world.rank == 0:
        print("all checked")


def array_rows(array: pgas.GlobalArray) -> slice:
    rows = array.rows(weft.my_pe())
    return slice(rows.start, rows.stop)


weft.pgas.run(main)
