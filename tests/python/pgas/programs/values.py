"""Single elements of each type, and copies of arrays, to the memory of each PE; `argv[1]` is its kind."""

import sys

import numpy as np

import weft
import weft.emulated
import weft.pgas as pgas

KIND = sys.argv[1]
VALUES = {
    "?": [True, False],
    "i1": [-128, 127],
    "u1": [0, 255],
    "i2": [-5, 30000],
    "u4": [0, 2**32 - 1],
    "i8": [-(2**63), 2**63 - 1],
    "u8": [0, 2**64 - 1],
    "f2": [0.5, -2.0],
    "f4": [0.25, -(2.0**40)],
    "f8": [0.1, -1e300],
    "c16": [1 + 2j, -3j],
    ">i4": [5, -7],
    "S3": [b"abc", b"z"],
}
RECORD = np.dtype([("a", "i4"), ("b", "f8", 2)])


async def single_values(own: pgas.Segment, to: pgas.GlobalPointer) -> None:
    for name, values in VALUES.items():
        pointer = to.cast(name)
        for value in values:
            await pgas.put(value, pointer)
            assert await pgas.get(pointer) == value, (name, value)
    record = np.array((7, (1.5, 2.5)), RECORD)[()]
    await pgas.put(record, to.cast(RECORD))
    assert await pgas.get(to.cast(RECORD)) == record
    for value, plain in [(np.float64(2.5), float), (np.float32(0.5), float), (3, float)]:
        await pgas.put(value, to)
        got = await pgas.get(to)
        assert got == value and type(got) is plain, got
    await pgas.put(np.int16(9), to.cast("i4"))
    assert type(await pgas.get(to.cast("i4"))) is int
    await pgas.put(np.array(4.5), to)
    assert await pgas.get(to) == 4.5
    zero = np.zeros(())
    assert await pgas.get(to, out=zero) is zero and zero == 4.5


async def arrays(to: pgas.GlobalPointer) -> None:
    values = np.arange(24.0).reshape(4, 6)
    await pgas.put(values, to)
    assert ((await pgas.get(to, (4, 6))) == values).all()
    # Any strides, at both ends.
    await pgas.put(values.T, to)
    assert ((await pgas.get(to, (6, 4))) == values.T).all()
    out = np.zeros((8, 12))
    assert await pgas.get(to, out=out[::2, ::-2]) is not None
    assert (out[::2, ::-2] == values.T.reshape(4, 6)).all() and (out[1::2] == 0).all()
    await pgas.put(values[::-1, ::2], to + 3)
    assert ((await pgas.get(to + 3, (4, 3))) == values[::-1, ::2]).all()
    # Without elements, nothing happens.
    await pgas.put(np.zeros((0, 3)), to)
    assert (await pgas.get(to, 0)).shape == (0,)
    assert await pgas.copy(to, to, 0) is None
    # Plain bytes fit uint8.
    await pgas.put(bytearray(b"abcdef"), to.cast("u1"))
    assert bytes(await pgas.get(to.cast("u1"), 6)) == b"abcdef"


async def device_arrays(to: pgas.GlobalPointer) -> None:
    """An array of this PE in device memory at the other end."""
    kind = "emulated" if KIND == "host" else KIND
    array = weft.DeviceArray((5, 2), "f8", kind)
    values = np.arange(10.0).reshape(5, 2) + 0.5
    await array.copy_from(values)
    await pgas.put(array, to)
    assert ((await pgas.get(to, (5, 2))) == values).all()
    await pgas.put(np.zeros((5, 2)), to)
    back = await pgas.copy(to, array)
    assert back is array and (await array.to_host() == 0).all()


async def copies(own: pgas.Segment, pointers: list[pgas.GlobalPointer]) -> None:
    """Between all pairs of PEs."""
    for source in pointers:
        for target in pointers:
            values = np.random.default_rng(1).random(16)
            await pgas.put(values, source + 30)
            assert await pgas.copy(source + 30, target + 60, 16) is None
            assert ((await pgas.get(target + 60, 16)) == values).all()
            await pgas.copy_strided(source + 30, (32, 8), target + 80, (8, 32), (4, 4))
            assert ((await pgas.get(target + 80, (4, 4))) == values.reshape(4, 4).T).all()
            await pgas.copy_indexed(source + 30, [0, 12, 4], target + 60, [6, 0, 3], 3)
            expected = [*values[12:15], *values[4:7], *values[0:3]]
            assert (await pgas.get(target + 60, 9)).tolist() == expected
            out = np.zeros(6)
            assert await pgas.copy_indexed(source + 30, np.array([3, 1]), out, [0, 4], 2) is out
            assert out.tolist() == [*values[3:5], 0, 0, *values[1:3]]
            await pgas.copy_strided(np.arange(6.0).reshape(2, 3), None, target + 60, (-8, 16), (2, 3))


async def main(world: pgas.Team) -> None:
    own = pgas.make_segment((10, 12), "f8", KIND)
    assert (own.shape, own.dtype, own.nbytes) == ((10, 12), np.dtype("f8"), 960)
    assert own.kind.split(":")[0] == KIND
    pointers = await world.allgather(own.pointer())
    for rank in range(world.size):  # one PE at a time works on the memory of all
        if rank == world.rank:
            for pointer in pointers:
                assert pointer.is_local == (pointer.pe == weft.my_pe())
                await single_values(own, pointer)
                await arrays(pointer)
                await device_arrays(pointer)
            await copies(own, pointers)
        await world.barrier()
    if KIND == "host":
        own.local[...] = world.rank
    else:
        await own.local.copy_from(np.full((10, 12), float(world.rank)))
    await world.barrier()
    assert ((await pgas.get(pointers[-1], (10, 12))) == world.size - 1).all()
    await world.barrier()  # the segments stay until here
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
