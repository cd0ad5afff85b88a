"""What is refused, with the pointer named, and that nothing moves then; `argv[1]` is the memory's kind."""

import sys

import numpy as np

import weft
import weft.pgas as pgas

KIND = sys.argv[1]


async def refused(start, *words: str, code: str = "", absent: tuple[str, ...] = ()) -> None:
    try:
        await start()
    except weft.Error as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, (missing, str(error))
        assert not any(word in str(error) for word in absent), str(error)
        assert not code or error.code == code, error.code
        return
    raise AssertionError(f"not refused: {words}")


async def pointers_to_nowhere(own: pgas.Segment, other: pgas.GlobalPointer, world: pgas.Team) -> None:
    place = f"segment 1 of PE {other.pe} ({KIND})"
    for operation in (
        lambda pointer: pgas.put(1.0, pointer),
        lambda pointer: pgas.get(pointer),
        lambda pointer: pgas.get(pointer, 3),
        lambda pointer: pgas.put(np.zeros(4)[::2], pointer),
        lambda pointer: pgas.copy(pointer, own.pointer(), 2),
        lambda pointer: pgas.fetch_add(pointer, 1),
        lambda pointer: pgas.copy_strided(pointer, (0,), own.pointer(), (8,), 3),
        lambda pointer: pgas.copy_indexed(pointer, [0], own.pointer(), [0]),
    ):
        await refused(lambda pick=operation: pick(other + 10), f"byte 80 of {place}", code="out of range")
        await refused(lambda pick=operation: pick(other - 1), f"byte -8 of {place}", code="out of range")
        await refused(lambda pick=operation: pick(pgas.GlobalPointer("f8")), "the null pointer")
    many = 2**40  # more blocks than could be listed
    await refused(
        lambda: pgas.copy_strided(own.pointer(), (8,), own.pointer(5), (16,), many),
        "the segment has 80 bytes",
    )
    far = pgas.GlobalPointer.from_bytes(b"\x63" + bytes(other)[1:], "f8")
    await refused(lambda: pgas.get(far), f"this job has PEs 0 to {world.size - 1}")
    unmade = pgas.GlobalPointer.from_bytes(bytes(other)[:4] + b"\x63" + bytes(other)[5:], "f8")
    await refused(lambda: pgas.put(1, unmade), "its PE has never had such a segment", code="not found")
    await refused(unmade.learn, "has never had")
    await refused(lambda: pgas.fetch_add(unaligned(other), 1), f"byte 3 of {place}")


def unaligned(pointer: pgas.GlobalPointer) -> pgas.GlobalPointer:
    return (pointer.cast("u1") + 3).cast("i8")


async def types_and_sizes(other: pgas.GlobalPointer) -> None:
    at = f"float64 at byte 0 of segment 1 of PE {other.pe}"
    await refused(
        lambda: pgas.put(np.zeros(3, "f4"), other),
        "weft.pgas.put got an array of float32 as its source and global memory of float64 as its target",
        "element types differ; convert the array to float64, for example with array.astype(); or cast() the",
    )
    await refused(lambda: pgas.put("three", other), "three", at)
    await refused(lambda: pgas.put(2.5, other.cast("i4")), "2.5", "int32 at byte 0")
    await refused(lambda: pgas.put(256, other.cast("u1")), "256", "out of the range")
    await refused(lambda: pgas.put(-1, other.cast("u8")), "-1 for uint64")
    await refused(lambda: pgas.put(2**64, other.cast("i8")), "int64 at byte 0")
    await refused(lambda: pgas.put(None, other), "None")
    await refused(lambda: pgas.put(b"abc", other), "plain bytes")
    await refused(lambda: pgas.put(np.array([None]), other), "Python objects")
    await refused(
        lambda: pgas.get(other, out=np.zeros(3, "i8")),
        "weft.pgas.get got global memory of float64 as its source and an array of int64 as its target",
        "give an array of float64, and convert what was read; or cast()",
    )
    await refused(lambda: pgas.get(other, -3), "get")
    await refused(lambda: pgas.get(other, 3, np.zeros(3)), "a shape of its own")
    await refused(lambda: pgas.copy(other, np.zeros(3), 4), "4 elements", "(3,)")
    await refused(lambda: pgas.copy(other, other + 5, -1), "-1 elements")
    await refused(lambda: pgas.copy(other, (other + 5).cast("i8")), "element types differ")
    await refused(lambda: pgas.copy(np.zeros(3), np.zeros(4)), "shapes differ")
    await refused(lambda: pgas.copy(other, "text"), "weft.pgas.copy got a str")
    await refused(lambda: pgas.copy(other, other + 1, 3), "overlap")
    await refused(lambda: pgas.copy(other, other + 1, 2**61), "address space")
    await refused(lambda: pgas.copy_strided(other, (8, 8), other + 5, (8,), 3), "2 strides and 1 extents")
    await refused(lambda: pgas.copy_strided(other, None, other + 5, (8,), 3), "shapes differ")
    await refused(lambda: pgas.copy_indexed(other, [0, 1], other + 5, [0]), "2 indices", "1 of the target")
    await refused(lambda: pgas.copy_indexed(other, [0], np.zeros(3), [2], 2), "index 2")
    await refused(lambda: pgas.copy_indexed(other, [0], np.zeros(3), [-1]), "index -1")
    await refused(lambda: pgas.copy_indexed(other, [0], np.zeros((3, 2)).T, [0]), "not C-contiguous")
    for name in ("?", "i2", "f2", "c8", ">i4"):
        await refused(lambda pick=name: pgas.fetch_add(other.cast(pick), 1), "fetch_add", "32 and 64 bits")
    await refused(lambda: pgas.fetch_or(other, 1), "fetch_or", "integers")
    await refused(lambda: pgas.fetch_add(other.cast("i4"), 1.5), "1.5 for int32")
    await refused(lambda: pgas.put(1, 5), "takes a weft.pgas.GlobalPointer, not a int")


async def elements_without_bytes() -> None:
    for dtype in ("V0", np.dtype([]), np.dtype([("none", "i4", (0,))])):
        source, target = np.zeros(4, dtype), np.zeros(4, dtype)
        assert source.itemsize == 0
        await pgas.copy_indexed(source, [0, 1], target, [2, 3])
        await pgas.copy_indexed(source, [0], target, [1], 0)
        await pgas.copy_strided(source, None, target, None, 4)
        await refused(lambda pair=(source, target): pgas.copy_indexed(pair[0], [4], pair[1], [0]), "index 4")


async def memory(other: pgas.GlobalPointer) -> None:
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    await refused(lambda: pgas.get(other, out=fixed), "read-only")
    await refused(lambda: pgas.get(other, out=np.broadcast_to(np.zeros(1), (3,))), "read-only")
    await refused(lambda: pgas.get(other.cast("u1"), out=b"abc"), "read-only")
    await pgas.put(fixed, other)  # a source may be
    for wrong in (
        lambda: pgas.make_segment(0),
        lambda: pgas.make_segment(-1),
        lambda: pgas.make_segment(3, "O"),
        lambda: pgas.make_segment(3, "f8", "magnetic"),
        lambda: pgas.make_segment_at(fixed),
        lambda: pgas.make_segment_at(np.zeros((3, 3)).T[1:]),
        lambda: pgas.make_segment_at(np.zeros(0)),
        lambda: pgas.make_segment_at("text"),
        lambda: pgas.make_segment((2, 3)).pointer((2, 0)),
        lambda: pgas.make_segment((2, 3)).pointer((0,)),
        lambda: pgas.make_segment((2, 3)).pointer(7),
        lambda: other.local(11) if other.is_local else pgas.make_segment(0),
    ):
        try:
            wrong()
        except weft.Error:
            continue
        raise AssertionError("not refused")


def as_floats(array: pgas.GlobalArray) -> pgas.GlobalPointer:
    return array.pointer((1, 0)).cast("f4")


async def arrays(world: pgas.Team) -> None:
    array = await pgas.make_array((6, 4), "i4", kind=KIND)
    for outside in (6, (0, 4), (-7, 0), [0, 6]):
        await refused(lambda key=outside: array.get(key), "is outside of an axis", code="out of range")
        await refused(lambda key=outside: array.put(key, 1), "is outside of an axis", code="out of range")
    for key in (6, -7, (0, 4), (0, 0, 0), 1.5, "row", None, (..., ...), [6], [[0]], ([0], 1), [True], True):
        await refused(lambda pick=key: array.get(pick))
    await refused(lambda: array.get(slice(0, 4, 0)), "zero")
    await refused(lambda: array.get(0, out=np.zeros(3, "i4")), "(4,)", "(3,)")
    await refused(lambda: array.get(0, out=[0] * 4), "list")
    # The errors name what the program called.
    called = "weft.pgas.GlobalArray."
    await refused(lambda: array.get(0, out=np.zeros(4)), called + "get", "element types differ")
    await refused(lambda: array.get([0], out=np.zeros((1, 4))), called + "get", "element types differ")
    await refused(
        lambda: array.put(0, np.zeros(4)),
        called + "put got an array of float64 as its source and global memory of int32 as its target, whose "
        "element types differ; convert the array to int32, for example with array.astype()",
        absent=("segment", "byte", "pointer"),
    )
    await refused(lambda: array.put([0], np.zeros((1, 4))), called + "put", "element types differ")
    await refused(lambda: pgas.copy(np.zeros(4), array[0]), "weft.pgas.copy got", "element types differ")
    await refused(lambda: pgas.copy(array[0], as_floats(array)), "weft.pgas.copy got", "element types")
    await refused(lambda: array.put(0, 1.5), "int32", "1.5")
    await refused(lambda: array.put(0, 2**40), "int32")
    await refused(lambda: array.put(0, ["a"]), "takes no such values")
    await refused(lambda: array.put(0, [1, 2, 3]), "(3,)")
    await refused(lambda: pgas.copy(array[0:2], array[2:5]), "does not fit")
    await refused(lambda: pgas.copy(array[[0, 1]], array[2:4]), "list of rows")
    await refused(lambda: pgas.copy(array[0:2], array[2:4], 3), "3 elements")
    await refused(lambda: pgas.copy(array[0:1], array[0:1]), "overlap")
    if world.size > 1:
        whole = np.zeros((6, 4), "i4")
        await refused(lambda: pgas.copy(array, whole, remote=print), "weft.pgas.copy got", "several PEs")
    await refused(lambda: array.put((0, slice(None)), weft.DeviceArray(3, "i4", "emulated")), "(3,)")
    for wrong in (
        lambda: array.pointer(0),
        lambda: array.pointer((0, 9)),
        lambda: array.pointer((True, 0)),
        lambda: array.pointer((0, np.True_)),
        lambda: array.pointer((0.0, 0)),
        lambda: array.rows(world.size),
    ):
        try:
            wrong()
        except weft.Error:
            continue
        raise AssertionError("not refused")
    await refused(lambda: pgas.make_array((), "i4"), "no shape")
    await refused(lambda: pgas.make_array(2.5, "i4"), "no shape")
    await refused(lambda: pgas.make_array(np.array([2.5]), "i4"), "no shape")
    await refused(lambda: pgas.make_array(4, [("a", "i4"), ("a", "i4")]), "rank 0: ValueError")
    # One rank alone is refused, and catches it: the others do not wait for it.
    await refused(lambda: pgas.make_array(None if world.rank == 0 else 4), "rank 0: ", "no shape")
    await refused(lambda: pgas.make_array(4, "no type"), "rank 0")
    await refused(
        lambda: pgas.make_array(4, kind="magnetic" if world.rank == 0 else "host"), "rank 0: ", "magnetic"
    )
    if world.size > 1:
        await refused(lambda: pgas.make_array(4 + world.rank), "collective")
        await refused(lambda: pgas.make_array(4, "f4" if world.rank else "f8"), "collective")


def assign(array: pgas.GlobalArray) -> None:
    array[1:3] = 5


def add_in_place(array: pgas.GlobalArray) -> None:
    array[1:3] += 5


def remove(array: pgas.GlobalArray) -> None:
    del array[1:3]


async def uses_of_values_elsewhere() -> None:
    array = await pgas.make_array((6, 4), "i4")
    for use in (
        assign,
        add_in_place,
        remove,
        lambda array: np.asarray(array),
        lambda array: np.asarray(array[1:3]),
        lambda array: np.ones((2, 4)) + array[1:3],
        lambda array: array + 1,
        lambda array: array[1:3] * 2,
        lambda array: array[0, 0] == 1,
        lambda array: array[0, 0] != 1,
        lambda array: array[0, 0] < 1,
        lambda array: bool(array[0, 0]),
        lambda array: float(array[0, 0]),
        lambda array: list(array),
        lambda array: list(array[1:3]),
        lambda array: array[1:3][0],
    ):
        try:
            use(array)
        except TypeError as error:
            for call in ("await array.get(key)", "await array.put(key", "weft.pgas.copy(", "array.local"):
                assert call in str(error), error
            continue
        raise AssertionError("not refused")


async def main(world: pgas.Team) -> None:
    own = pgas.make_segment(10, "f8", KIND)
    pointers = await world.allgather(own.pointer())
    other = pointers[(world.rank + 1) % world.size]
    await pgas.put(np.full(10, 4.5), own.pointer())
    await world.barrier()
    for rank in range(world.size):
        if rank == world.rank:
            await pointers_to_nowhere(own, other, world)
            await types_and_sizes(other)
            assert ((await pgas.get(other, 10)) == 4.5).all(), "something was written"
            await elements_without_bytes()
            await memory(other)
            await pgas.put(np.full(10, 4.5), other)
        await world.barrier()
    await arrays(world)
    await uses_of_values_elsewhere()
    await world.barrier()
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
