"""Futures in states that a chare copies, and in values of futures, when it moves. Prints "all checked"."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import weft

HOW = sys.argv[1]


class Copying(weft.Chare):
    def make(self) -> weft.Future[int]:
        self.future: weft.Future[int] = weft.Future()
        return self.future

    def __getstate__(self) -> dict[str, Any]:
        if HOW == "deepcopy":
            return copy.deepcopy(self.__dict__)
        if HOW == "pickled":
            state: dict[str, Any] = pickle.loads(pickle.dumps(self.__dict__))
            return state
        return dict(self.__dict__)

    def go(self, pe: int) -> None:
        self.migrate(pe)

    async def wait(self) -> int:
        return await self.future


class Waiting(weft.Chare):
    def __init__(self) -> None:
        self.is_open = False

    @weft.when(lambda self, future: self.is_open)
    def use(self, future: weft.Future[Any]) -> tuple[bool, int]:
        return future.done(), len(future.result())

    def go(self, pe: int) -> None:
        self.migrate(pe)

    def open(self) -> None:
        self.is_open = True


async def copies() -> None:
    keeper = weft.Singleton(Copying)
    future = await keeper.make.call()
    assert copy.copy(future) is future
    assert copy.deepcopy([future])[0] is future
    for pe in [*range(weft.num_pes()), 0, weft.num_pes() - 1]:
        await keeper.go.call(pe)
        await weft.quiescence()
    waiting = keeper.wait.call()
    future.set(5)
    assert await waiting == 5


async def nested() -> None:
    """The future is an argument of a call that waits, and travels with the chare."""
    circle: weft.Future[Any] = weft.Future()
    circle.set([circle, circle])
    tree: weft.Future[Any] = weft.Future()
    tree.set([])
    for _ in range(14):
        above: weft.Future[Any] = weft.Future()
        above.set([tree, tree])
        tree = above
    for future in (circle, tree):
        chare = weft.Singleton(Waiting)
        call = chare.use.call(future)
        await chare.go.call(weft.num_pes() - 1)
        await weft.quiescence()
        await chare.open.call()
        assert await call == (True, 2)


async def main() -> None:
    await (nested if HOW == "nested" else copies)()
    print("all checked")


weft.run(main)
