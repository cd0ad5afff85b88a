"""Constructors that are coroutines: coroutine_constructors.py MODE. Prints "all checked"."""

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
    """Its constructor waits for a gate."""

    async def __init__(self, holder: Any, failing: int) -> None:  # type: ignore[misc]
        self.steps = ["began"]
        await holder.wait.call()
        if self.index == failing:
            raise ValueError(f"no block {self.index}")
        self.steps.append("ended")

    def touch(self, array: Any = None) -> list[str]:
        assert self.steps[1] == "ended"
        return self.steps

    def go(self, to_pe: int) -> None:
        self.migrate(to_pe)


class WithCreated(Block):
    """created() runs when the constructor has ended."""

    async def created(self) -> None:
        assert self.steps == ["began", "ended"]
        await weft.yield_now()
        self.steps.append("created")


seen: list[int] = []  # elements of this PE whose created() has begun


class Seen(Block):
    def created(self) -> None:
        seen.append(self.index)


class Pe(weft.Chare):
    def seen(self) -> list[int]:
        return seen


class WithPlainCreated(Block):
    def created(self) -> None:
        assert self.steps == ["began", "ended"]
        self.steps.append("created")
        if self.index == 4:
            raise ValueError("no plain block 4")


class Derived(Block):
    async def __init__(self, holder: Any) -> None:  # type: ignore[misc]
        await super().__init__(holder, -1)
        self.steps.append("derived")


class Plain(weft.Chare):
    def __init__(self, size: int) -> None:
        self.size = size


class OverPlain(Plain):
    def __new__(cls, size: int) -> OverPlain:
        made: OverPlain = super().__new__(cls)
        made.made_for = size
        return made

    made_for: int

    async def __init__(self, size: int) -> None:  # type: ignore[misc]
        super().__init__(size)
        await weft.yield_now()

    def look(self) -> tuple[int, int]:
        return self.size, self.made_for


class Worker(weft.Chare):
    """Its constructor uses futures, reductions, channels and elements that are ready."""

    async def __init__(self, size: int) -> None:  # type: ignore[misc]
        self.total = await self.allreduce(self.index, weft.Reducer.sum)
        right = weft.Channel(self, self.proxy[(self.index + 1) % size])
        left = weft.Channel(self, self.proxy[(self.index - 1) % size])
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


class Contributes(weft.Chare):
    async def __init__(self, target: Any) -> None:  # type: ignore[misc]
        self.contribute(1, weft.Reducer.sum, target)
        await self.allreduce()
        self.contribute(2, weft.Reducer.sum, self.proxy[0].take)

    @weft.when(lambda self, total: True)
    def take(self, total: int) -> None:
        self.sum = total

    def look(self) -> int:
        return self.sum


class Returns(weft.Chare):
    async def __init__(self) -> None:  # type: ignore[misc]
        return 7


class Hidden(weft.Chare):
    """Its constructor is an ordinary function that returns a coroutine."""

    def __init__(self) -> None:
        coroutine = self.prepare()
        coroutine.close()
        return coroutine  # type: ignore[return-value]

    async def prepare(self) -> None:
        pass


class Raises(weft.Chare):
    """Raises before it waits, and exits."""

    async def __init__(self, code: int | None) -> None:  # type: ignore[misc]
        if code is not None:
            raise SystemExit(code)
        raise ValueError("no settings")


async def error_of(awaitable: Any) -> Any:
    try:
        await awaitable
    except weft.Error as error:
        return error
    return None


async def gated() -> tuple[Any, Any]:
    holder = weft.Singleton(Holder)
    return holder, await holder.open.call()


async def ready() -> None:
    last = weft.num_pes() - 1
    holder, gate = await gated()
    kinds = {
        Block: ["began", "ended"],
        WithCreated: ["began", "ended", "created"],
        Derived: ["began", "ended", "derived"],
    }
    collections, steps = [], list(kinds.values())
    for kind in kinds:
        args = (holder,) if kind is Derived else (holder, -1)
        collections.append(
            (
                weft.Array(kind, 7, args=args),
                weft.Group(kind, args=args),
                weft.Singleton(kind, last, args=args),
            )
        )
    made = [one.created() for array, group, _ in collections for one in (array, group)]
    calls = [
        call
        for array, group, single in collections
        for call in (
            array[6].touch.call(),
            array[0].touch.call(np.zeros(100_000)),
            array.touch.call(),
            array[::2].touch.call(),
            group.touch.call(),
            single.touch.call(),
        )
    ]
    await weft.quiescence()
    assert not any(one.done() for one in [*made, *calls])
    gate.set()
    await weft.gather(*made)
    results = await weft.gather(*calls)
    for i, expected in enumerate(steps):
        one, large, all_, section, group, single = results[6 * i : 6 * i + 6]
        assert one == large == single == expected
        assert (all_, section, group) == ([expected] * 7, [expected] * 4, [expected] * weft.num_pes())
    # A move does not run it again.
    array = collections[0][0]
    await array[0].go.call(last)
    assert await array[0].touch.call() == ["began", "ended"]
    workers = await weft.Array(Worker, 5, args=(5,))
    assert await workers.result.call() == [(10, (i - 1) % 5, True) for i in range(5)]
    over = await weft.Array(OverPlain, 3, args=(11,))
    assert await over.look.call() == [(11, 11)] * 3
    target: weft.Future[int] = weft.Future()
    contributors = await weft.Array(Contributes, 4, args=(target,))
    await weft.quiescence()
    assert await target == 4 and await contributors[0].look.call() == 8


async def raises() -> None:
    for failing in (0, 3, 6):
        holder, gate = await gated()
        blocks = weft.Array(WithCreated, 7, args=(holder, failing))
        made = blocks.created()
        early = blocks[failing].touch.call()
        await weft.quiescence()
        gate.set()
        error = await error_of(made)
        assert isinstance(error, weft.RemoteError) and error.type_name == "ValueError", error
        where = f"in the constructor of WithCreated[{failing}] on PE"
        assert f"no block {failing}" in str(error) and where in error.traceback_text, error
        text = str(await error_of(early))
        why = "the collection WithCreated could not be created: the constructor of WithCreated["
        assert why in text, text
    holder, gate = await gated()
    gate.set()
    error = await error_of(weft.Array(WithPlainCreated, 7, args=(holder, -1)))
    assert "no plain block 4" in str(error) and "in created() of WithPlainCreated[4]" in error.traceback_text
    assert "no settings" in str(await error_of(weft.Array(Raises, 3, args=(None,))))
    wrong = await error_of(weft.Array(Block, 3, args=(1, 2, 3, 4)))
    assert isinstance(wrong, TypeError) and "positional arguments" in str(wrong), wrong
    wrong = str(await error_of(weft.Array(Returns, 3)))
    assert "__init__() should return None, not 'int'" in wrong, wrong
    wrong = str(await error_of(weft.Array(Hidden, 3)))
    assert "__init__() should return None, not 'coroutine'" in wrong, wrong
    await weft.quiescence()


async def destroyed() -> None:
    for kind in (Block, WithCreated):
        holder, gate = await gated()
        blocks = weft.Array(kind, 4, args=(holder, -1))
        made = blocks.created()
        await weft.quiescence()
        assert not made.done()
        await blocks.destroy()
        error = await error_of(made)
        assert error.code == "closed", error
        assert f"the collection {kind.__name__} has been destroyed" in str(error), error
        gate.set()
        await weft.quiescence()


async def sparse() -> None:
    holder, gate = await gated()
    blocks = await weft.Array(WithCreated, 100, sparse=True)
    inserted = [blocks.insert(i, holder, 3, pe=i % weft.num_pes()) for i in range(6)]
    early = blocks[1].touch.call()
    counted = blocks.done_inserting()
    await weft.quiescence()
    assert not any(future.done() for future in [*inserted, early, counted])
    gate.set()
    errors = [await error_of(future) for future in inserted]
    assert [error is None for error in errors] == [True, True, True, False, True, True]
    assert "no block 3" in str(errors[3]), errors[3]
    assert "in the constructor of WithCreated[3] on PE" in errors[3].traceback_text, errors[3]
    assert await early == ["began", "ended", "created"]
    await counted
    assert len(blocks) == 5
    await blocks.insert(3, holder, -1)
    await blocks.done_inserting()
    assert await blocks.touch.call() == [["began", "ended", "created"]] * 6


async def saved() -> None:
    holder, gate = await gated()
    blocks = weft.Array(Block, 3, args=(holder, -1))
    made = blocks.created()
    await weft.quiescence()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/saved"
        error = await error_of(weft.checkpoint(path, {"blocks": blocks}))
        assert "the collection Block cannot be saved: the creation of Block[" in str(error), error
        gate.set()
        assert await made == blocks
        await weft.checkpoint(path, {"blocks": blocks})
        restored = (await weft.restore(path))["blocks"]
        assert await restored.touch.call() == [["began", "ended"]] * 3


async def first() -> None:
    """The first constructor raises: no created() of its PE begins."""
    pes = await weft.Group(Pe)
    holder, gate = await gated()
    made = weft.Array(Seen, 7, args=(holder, 0))
    gate.set()
    assert "no block 0" in str(await error_of(made))
    await weft.quiescence()
    assert await pes[0].seen.call() == []


async def unawaited() -> None:
    holder, gate = await gated()
    weft.Array(Block, 7, args=(holder, 6))
    gate.set()
    await weft.sleep(10)


async def exits() -> None:
    weft.Array(Raises, 2, args=(3,))
    await weft.sleep(10)


async def leaves() -> None:
    """The job ends while constructors wait."""
    holder, _ = await gated()
    weft.Array(WithCreated, 7, args=(holder, -1))
    await weft.quiescence()


weft.run(globals()[sys.argv[1]])
print("all checked")
