"""Load balancing at sync points. Prints "all checked".

balancing.py ramp|steps|measured|still|refused|destroyed|failing CLASS|periodic|periodic_sparse|no_period
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable

import numpy as np

import weft

MODE = sys.argv[1]


class Block(weft.Chare):
    """Reaches sync points on request."""

    def __init__(self, count: int = 1) -> None:
        self.weight = 1 + 9 * self.index / max(1, count - 1)
        self.field = np.full(100, float(self.index))
        self.events: list[str] = []
        self.over: weft.Future[int] | None = None
        self.calls = 0

    def migrated(self) -> None:
        self.events.append("migrated")

    def resume_from_sync(self) -> None:
        assert np.all(self.field == self.index)
        self.events.append("resumed")
        if self.over is not None:
            self.contribute(1, weft.Reducer.sum, self.over)

    def step(self, over: weft.Future[int] | None, load_s: float | None = None) -> None:
        self.over = over
        self.set_load_s(self.weight if load_s is None else load_s)
        self.at_sync()

    def measured_step(self, over: weft.Future[int]) -> None:
        self.over = over
        self.set_load_s(None)
        self.at_sync()

    async def waiting_step(self, over: weft.Future[int]) -> None:
        self.step(over)
        self.gate: weft.Future[None] = weft.Future()
        await self.gate
        del self.gate

    def open(self) -> None:
        self.gate.set(None)

    def go(self, to_pe: int) -> None:
        self.migrate(to_pe)

    def pin(self) -> None:
        self.pinned = True

    def call(self) -> None:
        self.calls += 1

    def spin(self, time_s: float) -> float:
        # The thread's time, because loads leave out waits for a processor; a thousandth more, for the clocks.
        end = time.thread_time() + 1.001 * time_s
        while time.thread_time() < end:
            pass
        return self.load_s

    async def spin_twice(self, time_s: float) -> None:
        self.spin(time_s)
        await weft.sleep(0)
        self.spin(time_s)

    def load_now(self) -> float:
        return self.load_s

    def where(self) -> int:
        return weft.my_pe()

    def log(self) -> list[str]:
        return self.events

    def num_calls(self) -> int:
        return self.calls


class Plain(weft.Chare):
    def sync(self) -> None:
        self.at_sync()

    def load_now(self) -> float:
        return self.load_s

    def set(self) -> None:
        self.set_load_s(1)


class Roamer(weft.Chare):
    balance_periodically = True

    def __init__(self) -> None:
        self.field = np.full(1000, self.index)
        self.heard: dict[int, int] = {}
        self.moves = 0
        self.load = 0.0

    def migrated(self) -> None:
        assert np.all(self.field == self.index)
        self.moves += 1

    def load_with(self, load_s: float) -> None:
        self.set_load_s(load_s)

    def hear(self, number: int) -> None:
        self.heard[number] = self.heard.get(number, 0) + 1

    def log(self) -> dict[int, int]:
        return self.heard

    def where(self) -> int:
        return weft.my_pe()

    def num_moves(self) -> int:
        return self.moves

    def load_now(self) -> float:
        return self.load_s

    def reach_sync_point(self) -> None:
        self.at_sync()

    async def pause(self) -> int:
        pe = weft.my_pe()
        self.gate: weft.Future[None] = weft.Future()
        await self.gate
        del self.gate
        return weft.my_pe() - pe

    def open(self) -> None:
        self.gate.set(None)


class Confused(weft.Chare):
    balance_periodically = True

    def resume_from_sync(self) -> None:
        pass


class Raising(weft.Chare):
    def go(self) -> None:
        self.at_sync()

    def resume_from_sync(self) -> None:
        raise ValueError("no way on")


class Async(weft.Chare):
    def go(self) -> None:
        self.at_sync()

    async def resume_from_sync(self) -> None:  # type: ignore[override]
        pass


class OnePerPe(weft.Chare):
    def step(self, over: weft.Future[int]) -> None:
        self.over = over
        self.at_sync()

    def resume_from_sync(self) -> None:
        self.contribute(1, weft.Reducer.sum, self.over)

    def where(self) -> int:
        return weft.my_pe()


def imbalance(pes: list[int], weights: list[float]) -> float:
    times = [sum(w for p, w in zip(pes, weights, strict=True) if p == pe) for pe in range(weft.num_pes())]
    return max(times) / (sum(times) / len(times)) - 1


async def ramp() -> None:
    count = 16 * weft.num_pes()
    blocks = weft.Array(Block, count, args=(count,))
    weights = [1 + 9 * i / (count - 1) for i in range(count)]
    before = imbalance(await blocks.where.call(), weights)
    over = weft.Future()
    blocks.step(over)
    assert await over == count
    after = imbalance(await blocks.where.call(), weights)
    if weft.num_pes() > 1:
        assert before > 0.3, before
    assert after < 0.05, after
    for events in await blocks.log.call():
        assert events in (["resumed"], ["migrated", "resumed"]), events
    print(f"imbalance {before:.4f} {after:.4f}")


async def steps() -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    numbers = random.Random(seed)
    count = 9
    blocks = weft.Array(Block, count)
    calls = 0
    for number in range(1, 16):
        over = weft.Future()
        for i in range(count):
            if numbers.random() < 0.3:
                blocks[i].go(numbers.randrange(weft.num_pes()))
            blocks[i].step(over, numbers.random())
            blocks.call()
            calls += 1
        assert await over == count
        for events in await blocks.log.call():
            assert events.count("resumed") == number, events
    assert await blocks.num_calls.call() == [calls] * count


async def measured() -> None:
    blocks = weft.Array(Block, 4)
    home = await blocks.where.call()
    busy = [i for i in range(4) if home[i] == 0]
    assert await blocks[busy[0]].load_now.call() > 0  # where() has run
    await blocks[busy[0]].spin.call(0.002)
    await blocks[busy[1]].spin_twice.call(0.002)
    assert await blocks[busy[0]].load_now.call() >= 0.002
    assert await blocks[busy[1]].load_now.call() >= 0.004
    over = weft.Future()
    for i in range(4):
        if i in busy:
            blocks[i].measured_step(over)
        else:
            blocks[i].step(over, 0)
    assert await over == 4
    if weft.num_pes() > 1:
        now = await blocks.where.call()
        assert now[busy[0]] != now[busy[1]], now
    plain = weft.Array(Plain, 1)
    assert await plain[0].load_now.call() == 0.0


# With the strategy rotate.
async def still() -> None:
    count = 2 * weft.num_pes()
    blocks = weft.Array(Block, count)
    before = await blocks.where.call()
    await blocks[0].pin.call()
    over = weft.Future()
    waiting = blocks[1].waiting_step.call(over)
    for i in [0, *range(2, count)]:
        blocks[i].step(over)
    assert await over == count
    blocks[1].open()
    await waiting
    after = await blocks.where.call()
    expected = [(pe + (i >= 2)) % weft.num_pes() for i, pe in enumerate(before)]
    assert after == expected, (before, after)
    group = weft.Group(OnePerPe)
    over = weft.Future()
    group.step(over)
    assert await over == weft.num_pes()
    assert await group.where.call() == list(range(weft.num_pes()))


async def refused() -> None:
    plain = weft.Array(Plain, 1)
    await expect_error(plain[0].sync.call(), "does not override resume_from_sync()")
    await expect_error(plain[0].set.call(), "has no load")
    blocks = weft.Array(Block, 2)
    await blocks[0].step.call(None)
    await expect_error(blocks[0].step.call(None), "it waits at one already")
    await expect_error(blocks[0].go.call(0), "it waits at a sync point")
    await expect_error(blocks[1].step.call(None, -1.0), "give 0 to")
    await expect_error(blocks[1].step.call(None, "much"), "real number")


async def destroyed() -> None:
    for turns in range(6):
        blocks = weft.Array(Block, 6)
        await blocks.step.call(None)
        for _ in range(turns):
            await weft.sleep(0)
        await blocks.destroy()


async def periodic() -> None:
    count = 16 * weft.num_pes()
    roamers = weft.Array(Roamer, count)
    weights = [1 + 9 * i / (count - 1) for i in range(count)]
    for i in range(count):
        roamers[i].load_with(weights[i])
    number = 0
    while (
        imbalance(await roamers.where.call(), weights) >= 0.05
    ):  # the limit of the test's time ends it otherwise
        for i in range(count):
            roamers[i].hear(number)
        number += 1
    await weft.quiescence()
    assert await roamers.log.call() == [dict.fromkeys(range(number), 1)] * count
    assert (sum(await roamers.num_moves.call()) > 0) == (weft.num_pes() > 1)
    await expect_error(roamers[0].reach_sync_point.call(), "does not override resume_from_sync()")
    # A coroutine may run while rounds come; its chare has not moved meanwhile.
    waiting = roamers[1].pause.call()
    for _ in range(100):
        await roamers.where.call()
    await roamers[1].open.call()
    assert await waiting == 0
    await roamers.destroy()
    expect_refusal(lambda: weft.Array(Confused, 2), "periodically or at sync points; remove one of them")


async def periodic_sparse() -> None:
    cells = weft.Array(Roamer, 100, sparse=True, map="block")
    indices = range(0, 40, 3)
    for i in indices:
        await cells.insert(i)
        cells[i].load_with(1.0)
    pes = [0]
    while len(set(pes)) < weft.num_pes():
        pes = [await cells[i].where.call() for i in indices]
    await cells.done_inserting()
    assert len(await cells.where.call()) == len(indices)
    for i in indices:
        await cells[i].remove()


async def no_period() -> None:
    roamers = weft.Array(Roamer, 4)
    await roamers.load_with.call(3.0)
    for _ in range(100):
        assert await roamers.load_now.call() == [0.0] * 4
    assert sum(await roamers.num_moves.call()) == 0


def expect_refusal(function: Callable[[], object], words: str) -> None:
    try:
        function()
    except weft.Error as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"nothing was raised: {words}")


async def failing() -> None:
    weft.Array({"raising": Raising, "async": Async}[sys.argv[2]], 1).go()
    await weft.Future()


async def expect_error(awaitable: weft.Future, words: str) -> None:
    try:
        await awaitable
    except (weft.Error, weft.RemoteError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"nothing was raised: {words}")


async def main() -> None:
    await globals()[MODE]()
    print("all checked")


weft.run(main)
