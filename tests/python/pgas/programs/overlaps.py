"""Copies between parts of one memory: those that overlap are refused, also across ranks; others are right."""

import itertools
import random

import numpy as np

import weft
import weft.pgas as pgas

SEED = 5
ROWS = 6


async def overlap(start) -> str:
    """What the refusal of an overlap says; empty if the copy was made."""
    try:
        await start()
    except weft.Error as error:
        assert "overlap" in str(error), error
        return str(error)
    return ""


def model() -> np.ndarray:
    return np.arange(ROWS * 3).reshape(ROWS, 3)


async def check(array: pgas.GlobalArray, source: tuple, target: tuple) -> None:
    numbers = model()
    await array.put(..., numbers)
    common = np.intersect1d(numbers[source], numbers[target])
    why = await overlap(lambda: pgas.copy(array[source], array[target]))
    assert bool(why) == (common.size > 0), (source, target, why)
    if not why:
        numbers[target] = numbers[source]
    assert np.array_equal(await array.get(), numbers), (source, target)


async def between_parts(array: pgas.GlobalArray) -> None:
    choose = random.Random(SEED)
    for length, step, by in itertools.product((1, 2, 3, 4), (1, 2, -1, -2), (1, 3)):
        firsts = [
            first
            for first in range(ROWS)
            if 0 <= first + (length - 1) * step < ROWS and 0 <= first + (length - 1) * by < ROWS
        ]
        for first, other in itertools.product(firsts, firsts):
            source, target = (
                slice(at, end if end >= 0 else None, stride)
                for at, stride in ((first, step), (other, by))
                for end in (at + length * stride,)
            )
            columns = choose.choice([(slice(None), slice(None)), (0, 2), (slice(0, 2), slice(1, 3)), (1, 1)])
            await check(array, (source, columns[0]), (target, columns[1]))
    why = await overlap(lambda: pgas.copy(array[2:4], array[3:5]))
    assert "[2:4, 0:3]" in why and "[3:5, 0:3]" in why, why
    assert await overlap(lambda: pgas.copy(array[::-1], array))


async def with_local_memory(array: pgas.GlobalArray) -> None:
    """Against this PE's rows as an array, and as a pointer."""
    count = min(len(array.local), ROWS - 1)
    local = array.local[:count]
    mine = array.rows(weft.my_pe())
    await array.put(..., model())
    for start in (
        lambda: array.get(slice(1, 1 + count), out=local),
        lambda: array.put(slice(1, 1 + count), local),
        lambda: array.get(list(range(1, 1 + count)), out=local),
        lambda: pgas.copy(array.pointer((mine[0], 0)), array[1 : 1 + count]),
        lambda: pgas.copy(array[1 : 1 + count], array.pointer((mine[0], 0))),
    ):
        assert await overlap(start), "an overlap with this PE's rows"
        assert np.array_equal(await array.get(), model()), "something was written"
    # Rows that have nothing in common.
    if len(array.local) < ROWS:
        assert not await overlap(lambda: array.get(slice(ROWS - 1, ROWS), out=local[:1]))
        assert np.array_equal(local[0], model()[-1])


async def main(world: pgas.Team) -> None:
    array = await pgas.make_array((ROWS, 3), "i8")
    await world.barrier()
    if world.rank == 0:
        await between_parts(array)
        await with_local_memory(array)
        other = await weft.pgas.make_array((ROWS, 3), "i8", team=alone)
        await other.put(..., 0)
        assert not await overlap(lambda: pgas.copy(array, other)), "other memory"
    await world.barrier()
    if world.rank == 0:
        print("all checked")


async def start(world: pgas.Team) -> None:
    global alone
    alone = await world.split(world.rank)
    await main(world)


weft.pgas.run(start)
