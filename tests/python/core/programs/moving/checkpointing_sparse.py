"""A sparse array that is saved and restored, on any number of PEs. Prints "all checked".

checkpointing_sparse.py FOLDER: saves in the first job, restores in later ones.
"""

import sys
import typing

import numpy as np

import weft

FOLDER = sys.argv[1]


class Place(typing.NamedTuple):
    level: int
    x: int


class Leaf(weft.Chare):
    index_type = Place

    def __init__(self, value):
        self.field = np.full(20_000, value)
        self.is_ready = False

    async def created(self):
        await weft.yield_now()
        self.is_ready = True

    def describe(self):
        return self.index, float(self.field[-1]), self.is_ready

    def go(self, to_pe):
        self.migrate(to_pe)

    async def total(self):
        return await self.allreduce(self.field[0], weft.Reducer.sum)


PLACES = [Place(1, 3), Place(2, 900_000), Place(2, 900_001)]


async def error_of(awaitable):
    try:
        await awaitable
    except weft.Error as error:
        return str(error)
    return ""


async def check(leaves, places):
    assert len(leaves) == len(places)
    assert await leaves.describe.call() == [(place, place.x, True) for place in places]
    assert await leaves.total.call() == [sum(place.x for place in places)] * len(places)


async def main():
    if weft.has_checkpoint(FOLDER):
        leaves = (await weft.restore(FOLDER))["leaves"]
    else:
        leaves = weft.Array(Leaf, (4, 1_000_000), sparse=True)
        for place in PLACES:
            await leaves.insert(place, place.x)
        assert "await done_inserting() before" in await error_of(weft.checkpoint(FOLDER, {"leaves": leaves}))
        await leaves.done_inserting()
    await check(leaves, PLACES)
    for pe in range(weft.num_pes()):
        await leaves[PLACES[0]].go.call(pe)
    new = Place(3, 5)
    await leaves.insert(new, new.x)
    await leaves[PLACES[1]].remove()
    await leaves.done_inserting()
    await check(leaves, [PLACES[0], PLACES[2], new])
    assert "finds no element" in await error_of(leaves[PLACES[1]].describe.call())
    await leaves[new].remove()
    await leaves.insert(PLACES[1], PLACES[1].x)
    await leaves.done_inserting()
    await weft.checkpoint(FOLDER, {"leaves": leaves})
    print("all checked")


weft.run(main)
