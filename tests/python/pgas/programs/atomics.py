"""Atomic operations on the memory of all PEs; `argv[1]` is its kind."""

import sys

import numpy as np

import weft
import weft.pgas as pgas

KIND = sys.argv[1]
ROUNDS = 50


async def results(pointer: pgas.GlobalPointer, name: str) -> None:
    word = pointer.cast(name)
    await pgas.atomic_store(word, 6)
    assert await pgas.atomic_load(word) == 6
    assert await pgas.fetch_add(word, 3) == 6
    assert await pgas.exchange(word, 12) == 9
    assert await pgas.compare_exchange(word, 11, 1) == 12, "another value stays"
    assert await pgas.compare_exchange(word, 12, 10) == 12
    assert await pgas.get(word) == 10
    if name[0] == "f":
        assert await pgas.fetch_add(word, 0.5) == 10 and await pgas.atomic_load(word) == 10.5
        assert type(await pgas.atomic_load(word)) is float
        return
    assert await pgas.fetch_and(word, 6) == 10
    assert await pgas.fetch_or(word, 5) == 2
    assert await pgas.fetch_xor(word, 1) == 7
    assert await pgas.atomic_load(word) == 6
    assert type(await pgas.atomic_load(word)) is int


async def wraps(pointer: pgas.GlobalPointer) -> None:
    signed = pointer.cast("i4")
    await pgas.atomic_store(signed, 2**31 - 1)
    await pgas.fetch_add(signed, 1)
    assert await pgas.atomic_load(signed) == -(2**31)


async def main(world: pgas.Team) -> None:
    own = pgas.make_segment(4, "i8", KIND)
    pointers = await world.allgather(own.pointer())
    for rank in range(world.size):
        if rank == world.rank:
            for pointer in pointers:
                for name in ("i4", "u4", "i8", "u8", "f4", "f8"):
                    await results(pointer, name)
                await wraps(pointer)
        await world.barrier()
    await pgas.put(np.zeros(4, "i8"), own.pointer())
    await world.barrier()
    # All at once.
    for round_number in range(ROUNDS):
        await pgas.fetch_add(pointers[round_number % world.size] + 1, 1)
        await pgas.fetch_add((pointers[0] + 2).cast("f8"), 0.5)
    await world.barrier()
    counts = [await pgas.atomic_load(pointer + 1) for pointer in pointers]
    assert sum(counts) == ROUNDS * world.size
    assert await pgas.get((pointers[0] + 2).cast("f8")) == ROUNDS * world.size / 2
    await world.barrier()
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
