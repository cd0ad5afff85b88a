"""Groups of device arrays: misuse, their life, and arrays in other forms."""

import gc

import numpy as np

import weft
import weft.pgas as pgas

KIND = "emulated"


def refused(words: tuple[str, ...], call, *arguments, **more) -> None:
    try:
        call(*arguments, **more)
    except weft.Error as error:
        assert all(word in str(error) for word in words), (words, str(error))
        return
    raise AssertionError(f"not refused: {call.__name__}{arguments}")


async def fails(words: tuple[str, ...], future, code: str) -> None:
    try:
        await future
    except weft.Error as error:
        assert all(word in str(error) for word in words), (words, str(error))
        assert error.code == code, error.code
        return
    raise AssertionError(f"did not fail: {words}")


async def filled(count, value, dtype="float32") -> weft.DeviceArray:
    array = weft.DeviceArray(count, dtype, KIND)
    await array.copy_from(np.full(count, value, dtype))
    return array


async def misuse(group) -> None:
    floats = weft.DeviceArray(8, "float32", KIND)
    name = "DeviceGroup.all_reduce"
    for dtype in ("uint32", "int16", "complex64", "bool", ">f4", "float8_e5m2"):
        refused(
            (name, "int32, int64, float16, bfloat16, float32 and float64"),
            group.all_reduce,
            weft.DeviceArray(8, dtype, KIND),
        )
    refused(("is memory of host",), group.all_reduce, np.zeros(8, "float32"))
    refused((name,), group.all_reduce, 7)
    refused(("the same type",), group.all_reduce, floats, weft.DeviceArray(8, "int32", KIND))
    refused(("needs 8 elements",), group.all_reduce, floats, weft.DeviceArray(9, "float32", KIND))
    refused(("needs 16 elements",), group.all_gather, floats, weft.DeviceArray(8, "float32", KIND))
    refused(("needs 4 elements",), group.reduce_scatter, floats, weft.DeviceArray(8, "float32", KIND))
    odd = weft.DeviceArray(7, "float32", KIND)
    for call in (group.all_gather, group.reduce_scatter, group.all_to_all):
        refused(("no equal parts for 2 members",), call, odd)
    for root in (-1, 2, 2**40):
        refused(("the group has ranks 0 to 1",), group.broadcast, floats, root)
    refused(("sum, product, min",), group.all_reduce, floats, op=weft.Reducer.gather)
    refused(("sum, product, min and max",), group.all_reduce, floats, op=weft.Reducer.logical_or)
    refused(("overlap",), group.all_reduce, floats[:4], floats[2:6])
    two = weft.Stream(KIND), weft.Stream(KIND)
    refused(("two streams",), group.all_reduce, floats.on(two[0]), floats.on(two[1]))
    group.all_reduce(floats.on(two[0]), floats.on(two[1]), stream=two[0])
    await group.over()


async def streams(world, group) -> None:
    """An operation runs on the stream that is given, that the array names, or of programs that name none."""
    stream = weft.Stream(KIND)
    array = weft.DeviceArray(4, "float32", KIND)

    def fill(view, value):
        view[:] = value

    for given, named in ((stream, array), (None, array.on(stream)), (None, array)):
        names_none = given is None and named is array
        on = None if names_none else stream
        weft.emulated.launch(fill, array, world.rank + 1.0, stream=on)
        group.all_reduce(named, stream=given)
        weft.emulated.launch(fill, array[:1], 9.0, stream=on)
        group.all_reduce(named[:1], op=weft.Reducer.min, stream=given)
        await group.over()
        assert (await array.to_host()).tolist() == [9.0, 3.0, 3.0, 3.0]


async def life(world, group) -> None:
    # Arrays stay until the operation is over, which waits for the other rank.
    if world.rank == 0:
        group.all_reduce(await filled(4, 1.0))
        gc.collect()
    await world.barrier()
    if world.rank == 1:
        array = await filled(4, 2.0)
        group.all_reduce(array)
        await group.over()
        assert (await array.to_host()).tolist() == [3.0] * 4
    await group.over()
    assert repr(group) == f"<weft.pgas.DeviceGroup, rank {world.rank} of 2 on emulated:{group.kind[-1]}>"
    assert (group.rank, group.size) == (world.rank, 2)
    closing = group.close()
    refused(("has been closed",), group.all_reduce, await filled(4, 2.0))
    refused(("has been closed",), group.over)
    refused(("has been closed",), group.close)
    await closing


async def failures(world) -> None:
    """All ranks get the failure of one."""
    host_at_1 = world.device_group("host" if world.rank == 1 else KIND)
    await fails(("rank 1 (PE 1)", "a device that this process can use"), host_at_1, "unsupported")
    sizes = world.device_group(KIND, place_bytes=1000 + 1000 * world.rank)
    await fails(("on all ranks",), sizes, "invalid argument")
    none = world.device_group(KIND, place_bytes=-1)
    await fails(("rank 0 (PE 0): a place of 0 bytes",), none, "invalid argument")
    refused(("there is no memory kind",), world.device_group, "gpu")


async def main(world):
    await failures(world)
    group = await world.device_group(KIND, place_bytes=4096)
    await misuse(group)
    await streams(world, group)
    await life(world, group)
    left = await world.device_group()  # the job ends with it
    left.all_reduce(await filled(100_000, 1.0))
    if world.rank == 0:
        print("all checked")


pgas.run(main)
