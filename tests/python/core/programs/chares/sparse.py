"""Sparse arrays: insert, remove, done_inserting; what calls, gathers and reductions find meanwhile."""

from __future__ import annotations

import random
import sys
from collections.abc import Awaitable
from typing import Any

import weft


class Cell(weft.Chare):
    def __init__(self, value: int = 0, name: str = "") -> None:
        if value < 0:
            raise ValueError("a cell holds no negative value")
        self.value = value
        self.name = name
        self.heard: list[tuple[int, int]] = []

    def get(self) -> tuple[Any, int, str]:
        return self.index, self.value, self.name

    def pe(self) -> int:
        return weft.my_pe()

    def go(self, to_pe: int) -> None:
        self.migrate(to_pe)

    def end(self) -> None:
        self.remove_self()

    def give(self, done: weft.Future[int]) -> None:
        self.contribute(1, weft.Reducer.sum, done)

    async def total(self) -> int:
        total: int = await self.allreduce(self.value, weft.Reducer.sum)
        return total

    async def wait(self, begun: weft.Future[weft.Future[int]]) -> int:
        gate: weft.Future[int] = weft.Future()
        begun.set(gate)
        return await gate


class Flower(weft.Chare):
    """Reports what it has heard when it is removed, or asked."""

    def __init__(self, diary: weft.ElementProxy) -> None:
        self.diary = diary
        self.heard: list[tuple[int, int]] = []
        self.ends = False

    def hear(self, sender: int, number: int) -> None:
        self.heard.append((sender, number))
        if self.ends:  # calls that were queued before the removal still run
            self.report()

    def report(self) -> None:
        self.diary.note(self.heard)
        self.heard = []

    def go(self, to_pe: int) -> None:
        self.migrate(to_pe)

    def end(self) -> None:
        self.report()
        self.ends = True
        self.remove_self()


class Diary(weft.Chare):
    def __init__(self) -> None:
        self.heard: list[tuple[int, int]] = []

    def note(self, heard: list[tuple[int, int]]) -> None:
        self.heard += heard

    def all(self) -> list[tuple[int, int]]:
        return self.heard


class Gardener(weft.Chare):
    async def run(self, flowers: weft.Array, diary: weft.ElementProxy, seed: int) -> int:
        draw = random.Random(seed + weft.my_pe())
        begun = []
        sent = 0
        for _ in range(600):
            i = draw.randrange(9)
            what = draw.randrange(12)
            if what < 2:
                begun.append(flowers.insert(i, diary, pe=draw.choice([None, *range(weft.num_pes())])))
            elif what == 2:
                flowers[i].end()
            elif what < 5:
                flowers[i].go(draw.randrange(weft.num_pes()))
            elif what == 5:
                await weft.yield_now()
            else:
                flowers[i].hear(weft.my_pe(), sent)
                sent += 1
        for insertion in begun:
            try:
                await insertion
            except weft.Error as error:
                assert "exists already" in str(error), error
        return sent


async def error_of(awaitable: Awaitable[object]) -> str:
    try:
        await awaitable
    except weft.Error as error:
        return str(error)
    return ""


def raised_by(function: Any, *args: Any, **kwargs: Any) -> str:
    try:
        function(*args, **kwargs)
    except weft.Error as error:
        return str(error)
    return ""


async def elements() -> None:
    cells = weft.Array(Cell, sparse=True)
    assert cells.shape == (2**31 - 1,)
    assert len(cells) == 0
    assert cells
    last = weft.num_pes() - 1
    waits = cells[12].get.call()
    await cells.insert(7, 70, "seven")
    await cells.insert(2**31 - 2, 1, pe=last)
    await cells.insert(12, 120, pe=None)
    assert await waits == (12, 120, "")
    assert await cells[7].get.call() == (7, 70, "seven")
    assert await cells[2**31 - 2].pe.call() == last
    await cells[7].go.call(last)
    assert await cells[7].pe.call() == last
    assert "Cell[7] cannot be inserted: it exists already" in await error_of(cells.insert(7))
    await cells[7].remove()
    assert "Cell[7] cannot be removed: it does not exist" in await error_of(cells[7].remove())
    for pe in range(weft.num_pes()):
        try:
            await cells.insert(7, -1, pe=pe)
        except weft.RemoteError as error:
            assert isinstance(error, ValueError) and "no negative value" in str(error), error
        else:
            raise AssertionError("the insertion has not failed")
    await cells.insert(7, 71)
    assert await cells[7].get.call() == (7, 71, "")

    begun: weft.Future[weft.Future[int]] = weft.Future()
    waiting = cells[7].wait.call(begun)
    gate = await begun
    removal = cells[7].remove()
    assert "a method of it waits" in await error_of(cells.done_inserting())
    gate.set(5)
    assert await waiting == 5
    await removal

    space = weft.Array(Cell, (1000, 1000, 1000, 1000, 100, 100), sparse=True, map="block")
    await space.insert((999, 999, 999, 999, 99, 99), 3)
    await space.done_inserting()
    assert await space.get.call() == [((999, 999, 999, 999, 99, 99), 3, "")]
    await weft.gather(cells.destroy(), space.destroy())
    assert "has been destroyed" in raised_by(cells.insert, 3)


async def sets() -> None:
    cells = weft.Array(Cell, (100, 100), sparse=True)
    expected: dict[tuple[int, int], int] = {}
    draw = random.Random(17)
    for _ in range(8):
        for _ in range(12):
            index = (draw.randrange(5), draw.randrange(5))
            if index in expected:
                del expected[index]
                await cells[index].remove()
            else:
                expected[index] = draw.randrange(100)
                await cells.insert(index, expected[index], pe=draw.randrange(weft.num_pes()))
        await cells.done_inserting()
        assert len(cells) == len(expected)
        moves = [cells[index].go.call(draw.randrange(weft.num_pes())) for index in expected]
        found = await cells.get.call()
        assert found == [(index, value, "") for index, value in sorted(expected.items())]
        # A call may be overtaken, and an element with a coroutine that waits cannot move.
        for move in moves:
            await move
        if expected:
            done: weft.Future[int] = weft.Future()
            cells.give(done)
            assert await done == len(expected)
            assert await cells.total.call() == [sum(expected.values())] * len(expected)
    cells.end()
    await weft.quiescence()
    await cells.done_inserting()
    assert len(cells) == 0
    assert await cells.get.call() == []


async def refused() -> None:
    cells = weft.Array(Cell, 10, sparse=True)
    array = weft.Array(Cell, 10)
    assert "insert() is for sparse arrays, and the collection Cell is none" in raised_by(array.insert, 1)
    assert "remove() is for sparse arrays" in raised_by(array[0].remove)
    assert "remove_self() is for sparse arrays" in await error_of(array[0].end.call())
    assert "have not been counted" in raised_by(cells.get.call)
    assert "index 10 is outside Cell" in raised_by(cells.insert, 10)
    assert "cannot be inserted on PE" in raised_by(cells.insert, 1, pe=weft.num_pes())
    assert "there is no PE -1" in raised_by(cells.insert, 1, pe=-1)
    assert "pass the constructor's arguments to insert()" in raised_by(
        weft.Array, Cell, 10, args=(1,), sparse=True
    )
    assert "insert it with pe=" in raised_by(weft.Array, Cell, 10, map=int, sparse=True)
    assert "needs a shape" in raised_by(weft.Array, Cell)
    assert "cannot be iterated over" in raised_by(iter, cells)
    assert "an argument of Cell.__init__" in raised_by(cells.insert, 1, lambda: 0)
    untyped: Any = cells
    try:
        untyped.insert(1, value=3)
    except TypeError as error:
        assert "pe=None" in str(error)
    else:
        raise AssertionError("a keyword of the constructor was taken")
    await cells.done_inserting()
    assert "Cell[3] does not exist" in await error_of(cells[3].get.call())


async def traffic() -> None:
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    diary = weft.Singleton(Diary)
    flowers = weft.Array(Flower, 1000, sparse=True)
    gardeners = weft.Group(Gardener)
    sent = await gardeners.run.call(flowers, diary, seed)
    await weft.quiescence()
    for i in range(9):
        # Calls have waited for the element, and may end it again.
        while await error_of(flowers.insert(i, diary)) == "":
            await weft.quiescence()
    await flowers.done_inserting()
    await flowers.report.call()
    await weft.quiescence()
    heard = await diary.all.call()
    assert sorted(heard) == [(pe, number) for pe in range(weft.num_pes()) for number in range(sent[pe])]


async def unawaited(which: str) -> None:
    cells = weft.Array(Cell, 10, sparse=True)
    if which == "insertion":
        cells.insert(3, -1)
    elif which == "removal":
        cells[3].remove()
    else:
        await cells.done_inserting()
        cells[3].get()
    await weft.quiescence()


async def main() -> None:
    which = sys.argv[1]
    if which == "unawaited":
        await unawaited(sys.argv[2])
    else:
        await {"elements": elements, "sets": sets, "refused": refused, "traffic": traffic}[which]()
    print("all checked")


weft.run(main)
