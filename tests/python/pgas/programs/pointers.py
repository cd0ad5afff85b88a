"""Global pointers as values: arithmetic, comparison, hashing, pickling, arguments, views of memory."""

import copy
import pickle

import numpy as np

import weft
import weft.pgas as pgas
from weft.pgas import GlobalPointer

NAMED = np.dtype([("x", "f4"), ("y", "i8")])


def arithmetic(pointer: GlobalPointer) -> None:
    assert pointer + 3 == 3 + pointer and (pointer + 3) - pointer == 3 and pointer - (pointer + 3) == -3
    assert (pointer + 5) - 5 == pointer and (pointer + 2).offset_bytes == 16
    assert pointer < pointer + 1 <= pointer + 1 and pointer + 1 > pointer and not pointer >= pointer + 1
    assert pointer != pointer.cast("i8") and pointer != 3
    assert pointer.cast("i4") + 2 == (pointer + 1).cast("i4")
    assert (pointer + np.int64(1)).offset_bytes == 8
    assert len({pointer, pointer + 1, pointer + 0}) == 2
    assert pointer and not GlobalPointer("f8") and not GlobalPointer(dtype=np.int32)
    for wrong in (lambda: pointer + 1.5, lambda: pointer + pointer, lambda: pointer < pointer.cast("i8")):
        try:
            wrong()
        except TypeError:
            continue
        raise AssertionError("not refused")
    for wrong in (
        lambda: pointer - pointer.cast("i8"),
        lambda: pointer + 2**62,
        lambda: GlobalPointer("O"),
        lambda: GlobalPointer("V0"),
        lambda: GlobalPointer.from_bytes(b"short", "f8"),
        lambda: GlobalPointer.from_bytes(b"\xff" * 16, "f8"),
    ):
        try:
            wrong()
        except weft.Error:
            continue
        raise AssertionError("not refused")


def same(pointer: GlobalPointer, other: GlobalPointer, nested: list) -> bool:
    assert nested[0]["key"] == pointer + 1 and type(nested[0]["key"]) is GlobalPointer
    return pointer == other and hash(pointer) == hash(other) and pointer.dtype == other.dtype


class Keeper(weft.Chare):
    def put(self, pointer):
        return pgas.put(weft.my_pe() + 0.5, pointer + self.index)

    async def write(self, pointer):
        await self.put(pointer)
        return pointer


async def travelling(world: pgas.Team, pointer: GlobalPointer) -> None:
    for one in (
        pointer,
        pointer.cast(NAMED),
        pointer.cast("M8[s]"),
        pointer.cast(">f4"),
        GlobalPointer("u1"),
    ):
        assert pickle.loads(pickle.dumps(one)) == one and copy.deepcopy(one) == one
        assert GlobalPointer.from_bytes(bytes(one), one.dtype) == one
        assert await world.rpc(world.size - 1, same, one, one, [{"key": one + 1}])
    assert len(bytes(pointer)) == 16
    # A pointer that lies in global memory.
    cell = pgas.make_segment(1, "V16")
    await pgas.put(np.frombuffer(bytes(pointer), "V16"), cell.pointer())
    assert GlobalPointer.from_bytes(bytes(await pgas.get(cell.pointer())), "f8") == pointer


async def views(world: pgas.Team, segment: pgas.Segment, pointers: list[GlobalPointer]) -> None:
    own = segment.pointer()
    view = (own + 2).local((2, 3))
    assert view.shape == (2, 3) and view.dtype == np.float64
    view[...] = 7
    assert (segment.local.ravel()[2:8] == 7).all() and np.shares_memory(view, segment.local)
    assert own.local().shape == (1,)
    for pointer in pointers:
        await pointer.learn()
        mapped = pointer.mapped(12)
        assert mapped is not None and (pointer.local() is None) == (pointer.pe != weft.my_pe())
        mapped[11] = 1  # the others' memory itself
    await world.barrier()
    assert segment.local[-1, -1] == 1


async def main(world: pgas.Team) -> None:
    segment = pgas.make_segment((3, 4))
    assert segment.pointer((1, 2)) == segment.pointer(6) and segment.pointer(12) - segment.pointer() == 12
    pointers = await world.allgather(segment.pointer())
    arithmetic(pointers[-1])
    await travelling(world, pointers[-1])
    await views(world, segment, pointers)
    assert repr(pointers[-1] + 1) == (
        f"<weft.pgas.GlobalPointer: float64 at byte 8 of segment 1 of PE {world.size - 1} (host)>"
    )
    await world.barrier()
    if world.rank == 0:
        chares = weft.Group(Keeper)
        assert await chares.write.call(pointers[0]) == [pointers[0]] * world.size
        assert segment.local.ravel()[: world.size].tolist() == [pe + 0.5 for pe in range(world.size)]
        print("all checked")


weft.pgas.run(main)
