"""Conditions of entry methods (weft.when). Prints "all checked".

conditions.py order SEED|arguments|coroutines|raising|collective|flood|many|equalities|moving KIND|balancing
conditions.py destroying|checkpoint FOLDER|misplaced|failing unawaited|failing destroyed
"""

from __future__ import annotations

import enum
import functools
import math
import pickle
import random
import sys
from typing import Any

import numpy as np

import weft

MODE = sys.argv[1]
LARGE = 10_000  # float64: travels out of band


def values_of(number: int, size: int) -> np.ndarray[Any, Any]:
    return np.arange(size) + float(number)


class Cell(weft.Chare):
    """Takes steps in the order of their numbers."""

    def __init__(self) -> None:
        self.next = 0
        self.ran: list[int] = []
        self.over: weft.Future[int] | None = None

    @weft.when(lambda self, number: number == self.next)
    def step(self, number: int, values: Any = None) -> int:
        if values is not None:
            assert np.array_equal(values, values_of(number, len(values)))
        self.ran.append(number)
        self.next += 1
        return number

    @weft.when(lambda self, values: values.size > 1 and values[0] == self.next)
    def step_by_value(self, label: str, values: np.ndarray[Any, Any], *, scale: int = 1) -> tuple[str, int]:
        self.step(int(values[0]), values)
        return label, scale

    @weft.when(lambda self, number: number == self.next)
    async def step_and_wait(self, number: int) -> int:
        self.step(number)
        await weft.yield_now()
        return number

    @weft.when(lambda self, number: number == self.next)
    def step_on_device(self, number: int, values: weft.DeviceArray) -> Any:
        self.step(number)
        return values

    def log(self) -> list[int]:
        return self.ran

    def go(self, to_pe: int) -> None:
        self.migrate(to_pe)

    def where(self) -> int:
        return weft.my_pe()


class Counting(weft.Chare):
    """Counts how often its conditions, and what finds calls for them, read it."""

    def __init__(self) -> None:
        self.value = 0
        self.reads = 0
        self.ran: list[int] = []

    @property
    def _next(self) -> int:
        self.reads += 1
        return self.value

    @weft.when(lambda self, number: number == self._next)
    def step(self, number: int) -> None:
        self.ran.append(number)
        self.value += 1

    @weft.when(lambda self, least: least <= self._next)
    def reach(self, least: int) -> int:
        return least

    @weft.when(lambda self, number, label: label != "" and number + 1 == self._next)
    def follow(self, number: int, label: str) -> str:
        return label

    def other(self) -> None: ...

    def set_value(self, value: int) -> None:
        self.value = value

    def count(self) -> int:
        reads, self.reads = self.reads, 0
        return reads

    def log(self) -> list[int]:
        return self.ran


class Own:
    """Equal to numbers whose hash is another."""

    def __init__(self, number: float) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return bool(self.number == (other.number if isinstance(other, Own) else other))

    def __hash__(self) -> int:
        return 77


class Weekday(enum.IntEnum):
    MONDAY = 1


# NumPy compares its scalars with tuples element by element, so that these are apart.
NUMBERS: list[Any] = [
    *(0, 1, True, -1, 0.0, -0.0, 1.0, 2**53, 2.0**53, 2**53 + 1, 2**62, 2.0**62, math.nan, math.inf),
    *(None, "1", b"1", "", Weekday.MONDAY, np.int64(1), np.int64(2**53 + 1), np.float64(2.0**53)),
    *(np.uint8(255), np.bool_(True), 0.1, np.float32(0.1), np.array([1]), Own(1), Own(2.0**53)),
]
TUPLES: list[Any] = [
    *(1, (), (1,), (True,), (1.0,), (1, (2, math.nan)), ((((((1,),),),),),), (((((1,),),),),), [1], {1}),
    *((2.0**53,), (2**53,), (2**53 + 1,), (np.int64(2**53 + 1),), (Own(1),), ("1",), frozenset({1})),
]


class Lock(weft.Chare):
    def __init__(self) -> None:
        self.key: Any = Own(1.5)
        self.box = [Own(1.5)]
        self.ran: list[int] = []

    @weft.when(lambda self, key: key == self.key)
    def open(self, key: Any, which: int) -> None:
        self.ran.append(which)

    @weft.when(lambda self, key: key == self.box[0])
    def unpack(self, key: Any, which: int) -> None:
        self.ran.append(which)

    def set_key(self, key: Any) -> None:
        self.key = key

    def set_in_box(self, key: Any) -> None:
        self.box[0] = key

    def log(self) -> list[int]:
        ran, self.ran = self.ran, []
        return ran


class Balanced(Cell):
    def sync(self, over: weft.Future[int]) -> None:
        self.over = over
        self.at_sync()

    def resume_from_sync(self) -> None:
        self.next = 1  # makes a call ready that has waited since before the step
        assert self.over is not None
        self.contribute(weft.my_pe(), weft.Reducer.sum, self.over)


class Purse(weft.Chare):
    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.spent: list[str] = []

    @weft.when(lambda self: self.tokens)  # its truth counts
    def spend(self, name: str) -> str:
        self.spent.append(name)
        return self.tokens.pop() + name

    def add(self, *tokens: str) -> None:
        self.tokens.extend(tokens)

    async def add_and_wait(self, begun: weft.Future[Any]) -> None:
        first: weft.Future[str] = weft.Future()
        second: weft.Future[str] = weft.Future()
        begun.set((first, second))
        self.tokens.append(await first)
        self.tokens.append(await second)

    @weft.when(lambda self, amount, most=10, least=1: 1 / (amount <= most) and amount >= least)
    def limited(self, amount: int, *, least: int = 0) -> int:
        return amount

    # With the condition of limited(). The caller does not know that it needs an argument.
    @functools.wraps(limited)
    def hidden(self, *args: Any, **kwargs: Any) -> int:
        return self.limited(*args, **kwargs)

    @weft.when(lambda self, by_position, by_name="default": by_position == by_name)
    def equal(self, by_position: str, /, by_name: str = "left out") -> str:
        return by_name

    @weft.when(lambda self, block: len(block) == 1)
    def store(self, block: bytes) -> None:
        self.spent.append("store")

    @weft.when(lambda self, block: self.spent.count("open") == 1)
    def gated(self, block: bytes) -> None:
        self.spent.append("gated")

    def open(self) -> None:
        self.spent.append("open")

    def history(self) -> list[str]:
        return self.spent


async def order() -> None:
    seed = int(sys.argv[2])
    print("seed", seed)
    chance = random.Random(seed)
    cells = await weft.Array(Cell, 2 * weft.num_pes())
    for cell in cells:
        numbers = list(range(100))
        chance.shuffle(numbers)
        results = []
        for number in numbers:
            size = chance.choice((None, 1, 100, LARGE))
            values = None if size is None else values_of(number, size)
            how = chance.randrange(4)
            if how == 0 or values is None or values.size < 2:
                results.append(cell.step.call(number, values))
            elif how == 1:
                results.append(cell.step.call(values=weft.nocopy(values), number=number))
            elif how == 2:
                results.append(cell.step_by_value.call("label", values))
            else:
                results.append(cell.step_and_wait.call(number))
        await weft.gather(*results)
        assert await cell.log.call() == list(range(100))


async def expect_error(call: Any, *sentences: str) -> weft.Error:
    try:
        await call
    except weft.Error as error:
        for sentence in sentences:
            assert sentence in f"{error}\n{getattr(error, 'traceback_text', '')}", error
        return error
    raise AssertionError(f"no error: {sentences}")


async def arguments() -> None:
    for purse in await weft.Array(Purse, weft.num_pes()):
        assert await purse.limited.call(5, least=2) == 5
        assert await purse.limited.call(amount=0) == 0  # the method's default value of `least`
        assert await purse.equal.call("a", "a") == "a"
        assert await purse.equal.call("left out") == "left out"
        assert await purse.equal.call("b", by_name="b") == "b"
        error = await expect_error(purse.hidden.call(), "hidden", "amount")
        assert isinstance(error, weft.RemoteError) and error.type_name == "TypeError"


async def coroutines() -> None:
    for purse in await weft.Array(Purse, weft.num_pes()):
        begun: weft.Future[Any] = weft.Future()
        adding = purse.add_and_wait.call(begun)
        first, second = await begun
        spent = [purse.spend.call(name) for name in "ab"]
        await weft.quiescence()
        assert not spent[0].done()
        first.set("x")
        assert await spent[0] == "xa" and not spent[1].done() and not adding.done()
        second.set("y")
        assert await spent[1] == "yb"
        await adding


async def raising() -> None:
    for purse in await weft.Array(Purse, weft.num_pes()):
        await purse.add.call("x")
        error = await expect_error(purse.limited.call(11), "limited (its condition)", "division by zero")
        assert isinstance(error, weft.RemoteError) and error.type_name == "ZeroDivisionError"
        waiting = purse.store.call(b"123")
        await expect_error(purse.store.call(1), "object of type 'int' has no len()")
        assert not waiting.done() and await purse.history.call() == []
        assert await purse.spend.call("a") == "xa"
        waiting.then(lambda _: None)  # it waits to the end of the job


async def collective() -> None:
    purses = await weft.Array(Purse, 5)
    spent = purses.spend.call("a")
    for i in (3, 0, 4, 1, 2):
        await weft.quiescence()
        assert not spent.done()
        purses[i].add(str(i))
    assert await spent == ["0a", "1a", "2a", "3a", "4a"]
    names = ("a", "b", "c", "d")
    order = [purses[4].spend.call(name) for name in names]
    await purses[4].add.call("1", "2", "3", "4")
    await weft.gather(*order)
    assert await purses[4].history.call() == ["a", *names]


async def flood() -> None:
    """More waits than flow control lets a sender be ahead; the call that ends the wait comes last."""
    purse = (await weft.Array(Purse, weft.num_pes()))[weft.num_pes() - 1]
    block = bytes(1 << 20)
    for _ in range(100):
        await purse.gated(block)
    for _ in range(1000):
        purse.gated(block[:100])
    await purse.open.call()
    await weft.quiescence()
    assert (await purse.history.call()).count("gated") == 1100


async def many() -> None:
    """The cost of a call does not grow with the number of calls that wait for something else."""
    size = 300
    for chare in await weft.Array(Counting, weft.num_pes()):
        for number in reversed(range(1, size)):
            chare.step(number)
        for least in range(size + 1, 2 * size):
            chare.reach(least)
        await weft.quiescence()
        assert await chare.count.call() < 5 * 2 * size
        for _ in range(100):
            await chare.other.call()
        assert await chare.count.call() < 5 * 100
        await chare.step.call(0)
        await weft.quiescence()
        assert await chare.log.call() == list(range(size))
        # Each step changes what the calls of `reach` read.
        followed = chare.follow.call(999, "label")
        assert await chare.follow.call(size - 1, "now") == "now"
        await chare.set_value.call(2 * size)
        await weft.quiescence()
        await chare.count.call()
        reached = [chare.reach.call(least) for least in range(2 * size, 2 * size + 3)]
        assert await reached[0] == 2 * size and not reached[1].done()
        await chare.set_value.call(2 * size + 2)
        assert await weft.gather(*reached[1:]) == [2 * size + 1, 2 * size + 2]
        await chare.set_value.call(1000)
        assert await followed == "label"


async def equalities() -> None:
    """Calls are found for all values that are equal by ==, and for no others."""
    for keys in (NUMBERS, TUPLES):
        for key in keys:
            lock = weft.Singleton(Lock, weft.num_pes() - 1)
            for i, one in enumerate(keys):
                lock.open(one, i)
                lock.unpack(one, i)
            await weft.quiescence()
            assert await lock.log.call() == []
            expected = [i for i, one in enumerate(pickle.loads(pickle.dumps(keys))) if one == key]
            await lock.set_key.call(key)
            await weft.quiescence()
            assert await lock.log.call() == expected, key
            await lock.set_in_box.call(key)
            await weft.quiescence()
            assert await lock.log.call() == expected, key


async def moving() -> None:
    kind = sys.argv[2]
    cells = await weft.Array(Cell, 3)
    rest = cells.step.call(6)
    for i, cell in enumerate(cells):
        results: list[Any] = [cell.step_and_wait.call(5)]
        results.append(cell.step_by_value.call("four", values=values_of(4, LARGE), scale=4))
        results.append(cell.step.call(3, weft.nocopy(values_of(3, LARGE))))
        on_device = weft.DeviceArray(LARGE, np.float64, kind)
        await on_device.copy_from(values_of(2, LARGE))
        results.append(cell.step_on_device.call(2, on_device))
        results.append(cell.step.call(1))
        await weft.quiescence()
        for to_pe in (1, 2, 2, 0, 1):
            await cell.go.call((to_pe + i) % weft.num_pes())
            await weft.quiescence()
            assert await cell.where.call() == (to_pe + i) % weft.num_pes()
            assert not any(result.done() for result in results)
        assert await cell.step.call(0) == 0
        five, four, three, two, one = await weft.gather(*results)
        assert (five, four, three, one) == (5, ("four", 4), 3, 1)
        assert np.array_equal(await two.to_host(), values_of(2, LARGE))
    assert await rest == [6, 6, 6]
    assert await cells.log.call() == [list(range(7))] * 3


async def balancing() -> None:
    cells = await weft.Array(Balanced, 4)
    await cells.step.call(0)
    await cells.step.call(1)
    waiting = [cell.step.call(1, values_of(1, LARGE)) for cell in cells]  # until resume_from_sync()
    before = await cells.where.call()
    await weft.quiescence()
    assert not any(call.done() for call in waiting)
    over: weft.Future[int] = weft.Future()
    cells.sync(over)
    await over
    await weft.gather(*waiting)
    assert weft.num_pes() == 1 or before != await cells.where.call()


async def destroying() -> None:
    purses = await weft.Array(Purse, weft.num_pes() + 1)
    calls = [purse.spend.call("a") for purse in purses] + [purses.spend.call("b")]
    await weft.quiescence()
    await purses.destroy()
    for call in calls:
        error = await expect_error(
            call, "Purse", ".spend still waits for its condition", "has been destroyed"
        )
        assert isinstance(error, weft.RemoteError) and error.type_name == "weft.Error"


async def checkpoint() -> None:
    purses = await weft.Array(Purse, 2)
    waiting = purses[1].spend.call("a")
    await expect_error(
        weft.checkpoint(sys.argv[2], {"purses": purses}),
        "Purse[1]",
        "1 of its calls wait for their conditions",
    )
    assert not weft.has_checkpoint(sys.argv[2])
    await purses[1].add.call("x")
    assert await waiting == "xa"
    await weft.checkpoint(sys.argv[2], {"purses": purses})
    assert weft.has_checkpoint(sys.argv[2])


class Private(weft.Chare):
    @weft.when(lambda self: True)
    def _hidden(self) -> None: ...


class Posted(weft.Chare):
    @weft.when(lambda self: True)
    def take(self, array: Any) -> None: ...

    @weft.post_entry("take")
    def post_take(self, array: weft.ReceiveBuffer) -> None: ...


async def misplaced() -> None:
    for made, sentence in (
        (Private, "Private._hidden has a condition (weft.when) and is no entry method"),
        (Posted, "Posted.take has a condition (weft.when) and a post entry method, post_take"),
    ):
        try:
            weft.Array(made, 1)
        except weft.Error as error:
            assert sentence in f"{error}\n{getattr(error, 'traceback_text', '')}", error
        else:
            raise AssertionError(sentence)


async def failing() -> None:
    purse = (await weft.Array(Purse, weft.num_pes()))[weft.num_pes() - 1]
    if sys.argv[2] == "unawaited":
        purse.limited(11)
        await weft.sleep(60)
    purse.spend("a")
    await weft.quiescence()
    await purse.collection.destroy()
    await weft.sleep(60)


async def main() -> None:
    await globals()[MODE]()
    print("all checked")


weft.run(main)
