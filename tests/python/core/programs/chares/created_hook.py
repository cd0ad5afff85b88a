"""created(), which may wait before a chare is ready: created_hook.py MODE. Prints "all checked"."""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import numpy as np

import weft


class Holder(weft.Chare):
    def open(self) -> weft.Future[None]:
        self.opened: weft.Future[None] = weft.Future()
        return self.opened

    async def wait(self) -> None:
        await self.opened


class Block(weft.Chare):
    """Its created() waits for a gate."""

    def __init__(self, holder: Any, failing: int) -> None:
        self.holder = holder
        self.failing = failing
        self.num_created = 0
        self.touched = 0
        self.is_ready = False

    async def created(self) -> None:
        self.num_created += 1
        await self.holder.wait.call()
        if self.index == self.failing:
            raise ValueError(f"no block {self.index}")
        self.is_ready = True

    def touch(self, array: Any = None) -> int:
        assert self.is_ready
        self.touched += 1
        return self.touched

    def times_created(self) -> int:
        return self.num_created

    def go(self, to_pe: int) -> None:
        self.migrate(to_pe)


class Worker(weft.Chare):
    """Its created() uses reductions, channels and elements that are ready."""

    def __init__(self, size: int) -> None:
        self.size = size

    async def created(self) -> None:
        self.total = await self.allreduce(self.index, weft.Reducer.sum)
        right = weft.Channel(self, self.proxy[(self.index + 1) % self.size])
        left = weft.Channel(self, self.proxy[(self.index - 1) % self.size])
        await weft.gather(right.send_object([self.index]), right.send(np.full(5000, self.index)))
        self.neighbour = (await left.recv_object())[0]
        array = np.empty(5000, int)
        await left.recv(into=array)
        assert (array == self.neighbour).all()
        self.helped = self.index == 0 or await self.proxy[0].number.call() == 17

    def number(self) -> int:
        return 17

    def result(self) -> tuple[int, int, bool]:
        return self.total, self.neighbour, self.helped


class Plain(weft.Chare):
    """created() need not wait. One class inherits it."""

    def __init__(self, ends: bool = False) -> None:
        self.steps = ["init"]
        self.ends = ends

    def created(self) -> None:
        self.steps.append("created")
        if self.ends:
            raise SystemExit(3)

    def look(self) -> list[str]:
        return self.steps


class Inherits(Plain):
    pass


class Late(weft.Chare):
    """Each fails later than the one before it."""

    async def created(self) -> None:
        for _ in range(self.index):
            await weft.sleep(0.01)
        raise ValueError(f"no settings for {self.index}")


class Dependent(weft.Chare):
    async def created(self) -> None:
        await weft.sleep(0)
        if self.index == 0:
            raise ValueError("no first")
        await self.proxy[0].number.call()

    def number(self) -> int:
        return 1


class Generates(weft.Chare):
    async def created(self) -> Any:
        yield


class Yields(weft.Chare):
    def created(self) -> Any:
        yield


class Returns(weft.Chare):
    def created(self) -> Any:
        return weft.Future()


async def error_of(awaitable: Any) -> Any:
    try:
        await awaitable
    except weft.Error as error:
        return error
    return None


async def ready() -> None:
    last = weft.num_pes() - 1
    for num_rounds in range(2):
        holder = weft.Singleton(Holder, pe=last * num_rounds)
        gate = await holder.open.call()
        made = weft.Array(Block, 7, args=(holder, -1)).created()
        group = weft.Group(Block, args=(holder, -1)).created()
        await weft.quiescence()
        assert not made.done() and not group.done()
        gate.set()
        blocks = await made
        await group
        assert await blocks.times_created.call() == [1] * 7
        await blocks[0].go.call(last)
        assert await blocks[0].times_created.call() == 1
    gate = await holder.open.call()
    blocks = weft.Array(Block, 7, args=(holder, -1))
    calls = [
        blocks[6].touch.call(),
        blocks[0].touch.call(np.zeros(100_000)),
        blocks.touch.call(),
        blocks[::2].touch.call(),
    ]
    blocks.touch()
    await weft.quiescence()
    assert not any(call.done() for call in calls)
    gate.set()
    results = await weft.gather(*calls)
    assert len(results[2]) == 7 and len(results[3]) == 4
    await weft.quiescence()
    assert await blocks.touch.call() == [5, 3, 4, 3, 4, 3, 5]
    workers = await weft.Array(Worker, 5, args=(5,))
    assert await workers.result.call() == [(10, (i - 1) % 5, True) for i in range(5)]
    for plain in (Plain, Inherits):
        assert await (await weft.Array(plain, 3)).look.call() == [["init", "created"]] * 3
    try:
        workers[0].created()
    except AttributeError as error:
        assert "created" in str(error)
    else:
        raise AssertionError("created() is no entry method")


async def raises() -> None:
    for failing in (0, 3, 6):
        holder = weft.Singleton(Holder, pe=0)
        gate = await holder.open.call()
        blocks = weft.Array(Block, 7, args=(holder, failing))
        made = blocks.created()
        early = blocks[failing].touch.call()
        await weft.quiescence()
        gate.set()
        error = await error_of(made)
        assert isinstance(error, weft.RemoteError) and error.type_name == "ValueError", error
        assert f"no block {failing}" in str(error), error
        assert f"in created() of Block[{failing}]" in error.traceback_text, error.traceback_text
        text = str(await error_of(early))
        assert "the collection Block could not be created: created() of Block[" in text, text
    await weft.quiescence()


async def several() -> None:
    for _ in range(5):
        error = await error_of(weft.Array(Late, 6))
        assert isinstance(error, weft.RemoteError) and "no settings for" in str(error), error
        assert "no first" in str(await error_of(weft.Array(Dependent, 6)))
    await weft.sleep(0.2)  # the slowest of Late


async def destroyed() -> None:
    holder = weft.Singleton(Holder, pe=0)
    gate = await holder.open.call()
    blocks = weft.Array(Block, 4, args=(holder, -1))
    made = blocks.created()
    await weft.quiescence()
    assert not made.done()
    await blocks.destroy()
    error = await error_of(made)
    assert error.code == "closed" and "the collection Block has been destroyed" in str(error), error
    gate.set()
    await weft.quiescence()


async def forms() -> None:
    for kind, result in ((Generates, "async_generator"), (Yields, "generator"), (Returns, "weft.Future")):
        text = str(await error_of(weft.Array(kind, 2)))
        assert f"created() of the class {kind.__name__} has returned" in text, text
        assert f"an object of the type {result}" in text and "async def created(self)" in text, text


async def sparse() -> None:
    holder = weft.Singleton(Holder, pe=0)
    gate = await holder.open.call()
    blocks = await weft.Array(Block, 100, sparse=True)
    inserted = [blocks.insert(i, holder, 3, pe=i % weft.num_pes()) for i in range(6)]
    early = blocks[1].touch.call()
    counted = blocks.done_inserting()
    await weft.quiescence()
    assert not any(future.done() for future in [*inserted, early, counted])
    gate.set()
    errors = [await error_of(future) for future in inserted]
    assert [error is None for error in errors] == [True, True, True, False, True, True]
    assert "no block 3" in str(errors[3]) and "in created() of Block[3]" in errors[3].traceback_text, errors[
        3
    ]
    assert await early == 1
    await counted
    assert len(blocks) == 5
    await blocks.insert(3, holder, -1)
    await blocks.done_inserting()
    assert await blocks.times_created.call() == [1] * 6


async def saved() -> None:
    holder = weft.Singleton(Holder, pe=0)
    gate = await holder.open.call()
    blocks = weft.Array(Block, 3, args=(holder, -1))
    made = blocks.created()
    await weft.quiescence()
    with tempfile.TemporaryDirectory() as folder:
        error = await error_of(weft.checkpoint(f"{folder}/saved", {"blocks": blocks}))
    assert "the collection Block cannot be saved: the creation of Block[" in str(error), error
    gate.set()
    assert await made == blocks


async def unawaited() -> None:
    holder = weft.Singleton(Holder, pe=0)
    gate = await holder.open.call()
    weft.Array(Block, 7, args=(holder, 6))
    gate.set()
    await weft.sleep(10)


async def exits() -> None:
    weft.Array(Plain, 2, args=(True,))
    await weft.sleep(10)


weft.run(globals()[sys.argv[1]])
print("all checked")
