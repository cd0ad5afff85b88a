"""Small programs of chares: each is a job of its own, and all jobs run in the same processes.

Each wrong one begins to hang, and main waits until the report of the waits names the cause. Each right one
waits for something that comes, with WEFT_HANG_REPORT set: nothing may be reported.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import weft
from weft import _core

LARGE = 1 << 20  # sent in place

#: name: (function, texts that the report has)
WRONG: dict[str, tuple[Callable[[], Any], list[str]]] = {}
RIGHT: dict[str, Callable[[], Any]] = {}


def wrong(*texts: str) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        WRONG[function.__name__] = (function, list(texts))
        return function

    return add


def right(function: Any) -> Any:
    RIGHT[function.__name__] = function
    return function


class Cell(weft.Chare):
    def other(self) -> Any:
        return self.proxy[1 - self.index]

    async def receive_alone(self) -> None:
        if self.index == 0:
            await weft.Channel(self, self.other()).recv(np.empty(4))
        else:
            weft.Channel(self, self.other())

    async def send_large_first(self) -> None:
        channel = weft.Channel(self, self.other())
        await channel.send(np.zeros(LARGE))
        await channel.recv(np.empty(LARGE))

    async def receive_first(self) -> None:
        channel = weft.Channel(self, self.other())
        await channel.recv(np.empty(4))
        await channel.send(np.zeros(4))

    async def use_other_ids(self) -> None:
        await weft.Channel(self, self.other(), id=self.index).recv(np.empty(1))

    async def receive_around(self, count: int) -> None:
        left = weft.Channel(self, self.proxy[(self.index - 1) % count])
        right = weft.Channel(self, self.proxy[(self.index + 1) % count])
        await left.recv(np.empty(2))
        await right.send(np.zeros(2))

    async def receive_from_itself(self) -> None:
        await weft.Channel(self, self.proxy[self.index]).recv(np.empty(1))

    async def receive_too_often(self) -> None:
        channel = weft.Channel(self, self.other())
        if self.index == 0:
            channel.send(np.zeros(1))
        else:
            for _ in range(2):
                await channel.recv(np.empty(1))

    async def receive_object(self) -> None:
        channel = weft.Channel(self, self.other())
        if self.index == 0:
            await channel.recv_object()

    async def send_unread(self) -> None:
        channel = weft.Channel(self, self.other())
        if self.index == 0:
            await channel.send(np.zeros(LARGE))

    async def reduce_without(self, missing: int) -> None:
        if self.index != missing:
            await self.allreduce(1, weft.Reducer.sum)

    async def reduce_or_receive(self) -> None:
        if self.index == 0:
            await self.allreduce(1, weft.Reducer.sum)
        else:
            await weft.Channel(self, self.other()).recv(np.empty(1))

    async def reduce_twice_or_once(self) -> None:
        await self.allreduce(1, weft.Reducer.sum)
        if self.index == 1:
            await self.allreduce(1, weft.Reducer.sum)

    async def call_other(self) -> int:
        result: int = await self.other().call_back.call()
        return result

    async def call_back(self) -> int:
        self.never = weft.Future()
        result: int = await self.never
        return result

    async def wait_for_several(self) -> None:
        if self.index == 0:
            channel = weft.Channel(self, self.other())
            sent = self.other().echo.call(1)
            await weft.gather(sent, channel.recv(np.empty(3)))

    def echo(self, value: int) -> int:
        return value

    async def nested(self) -> None:
        await self.inner()

    async def inner(self) -> None:
        if self.index == 0:
            await weft.Channel(self, self.other()).recv(np.empty(5))


class Store(weft.Chare):
    def __init__(self) -> None:
        self.items: list[int] = []

    @weft.when(lambda self: len(self.items) > 0)
    def take(self) -> int:
        return self.items.pop()

    def put(self, item: int) -> None:
        self.items.append(item)


class Lock(weft.Chare):
    """Two of them are taken in different orders."""

    def __init__(self) -> None:
        self.held = False

    @weft.when(lambda self: not self.held)
    def take(self) -> None:
        self.held = True

    def release(self) -> None:
        self.held = False


class User(weft.Chare):
    async def use(self, locks: Any) -> None:
        first, second = locks[self.index], locks[1 - self.index]
        await first.take.call()
        await self.proxy[1 - self.index].ready.call()
        await second.take.call()

    async def ready(self) -> None:
        pass


@wrong("Cell[1] waits for nothing, and Cell[0] waits for it", "recv of 32 bytes from Cell[1], channel id 0")
def receive_alone() -> None:
    weft.Array(Cell, 2).receive_alone()


@wrong("Cell[0] waits for Cell[1], and Cell[1] for Cell[0]", "which no recv has taken")
def send_large_first() -> None:
    weft.Array(Cell, 2).send_large_first()


@wrong("Cell[0] waits for Cell[1], and Cell[1] for Cell[0]", "chares.py:")
def receive_first() -> None:
    weft.Array(Cell, 2).receive_first()


@wrong("channel id 0, which it has not made")
def use_other_ids() -> None:
    weft.Array(Cell, 2).use_other_ids()


@wrong("Cell[0] waits for Cell[2], Cell[2] for Cell[1], and Cell[1] for Cell[0]")
def receive_around() -> None:
    weft.Array(Cell, 3).receive_around(3)


@wrong("Cell[0] waits for itself")
def receive_from_itself() -> None:
    weft.Array(Cell, 1).receive_from_itself()


@wrong("Cell[0] waits for nothing, and Cell[1] waits for it", "recv of 8 bytes")
def receive_too_often() -> None:
    weft.Array(Cell, 2).receive_too_often()


@wrong("Cell[1] waits for nothing, and Cell[0] waits for it", "Cell[0].receive_object", "a recv from Cell[1]")
def receive_object() -> None:
    weft.Array(Cell, 2).receive_object()


@wrong(
    "Cell[1] waits for nothing, and Cell[0] waits for it",
    "a send to Cell[1], channel id 0, which no recv has taken",
)
def send_unread() -> None:
    weft.Array(Cell, 2).send_unread()


@wrong("reduction 0 of Cell lacks Cell[2]", "the result of reduction 0 of Cell")
def reduce_without() -> None:
    weft.Array(Cell, 4).reduce_without(2)


@wrong("Cell[0] waits for Cell[1], and Cell[1] for Cell[0]", "reduction 0 of Cell lacks Cell[1]")
def reduce_or_receive() -> None:
    weft.Array(Cell, 2).reduce_or_receive()


@wrong("reduction 1 of Cell lacks Cell[0]")
def reduce_twice_or_once() -> None:
    weft.Array(Cell, 2).reduce_twice_or_once()


@wrong("Cell[1].call_back (", "a future that nothing has set", "the result of Cell[1].call_back")
def call_other() -> None:
    weft.Array(Cell, 2)[0].call_other()


@wrong("recv of 24 bytes from Cell[1]", "Cell[0].wait_for_several (")
def wait_for_several() -> None:
    weft.Array(Cell, 2).wait_for_several()


@wrong("recv of 40 bytes from Cell[1]", "Cell[0].nested (")
def nested() -> None:
    weft.Array(Cell, 2).nested()


@wrong("Store[0].take: its when-condition holds for none of 3 calls")
def take_from_empty() -> None:
    store = weft.Array(Store, 1)
    for _ in range(3):
        store[0].take()


@wrong("Lock[0].take: its when-condition holds for none of 1 call", "the result of Lock[1].take")
def lock_order() -> None:
    weft.Array(User, 2).use(weft.Array(Lock, 2))


@wrong("main on PE 0 (", "a future that nothing has set")
def future_unset() -> None:
    async def wait() -> None:
        await weft.Future()

    _core._spawn(wait(), "main")


@wrong("a future of several values that was not set so often")
def future_of_several() -> None:
    async def wait() -> None:
        future: weft.Future[Any] = weft.Future(2)
        future.set(1)
        await future

    _core._spawn(wait(), "main")


@wrong("barrier of a team, in which PE 1 has not taken its part", "main on PE 1 waits for nothing")
def barrier_alone() -> None:
    from weft import pgas

    async def wait() -> None:
        await pgas.world().barrier()

    _core._spawn(wait(), "main")


@right
async def sleep() -> None:
    await weft.sleep(1)


@right
async def time_out() -> None:
    try:
        async with weft.timeout(1):
            await weft.Future()
    except TimeoutError:
        pass


@right
async def thread_sets() -> None:
    future: weft.Future[int] = weft.Future()
    thread = threading.Timer(1, lambda: future.set(1))
    thread.start()
    await future
    thread.join()


class Sleeper(weft.Chare):
    async def work(self) -> None:
        if self.index == 1:
            await weft.sleep(1)
        await self.allreduce(1, weft.Reducer.sum)

    def compute(self) -> None:
        if self.index == 1:
            time.sleep(1)


@right
async def reduce_late() -> None:
    await weft.Array(Sleeper, 2).work.call()


@right
async def compute_long() -> None:
    await weft.Array(Sleeper, 2).compute.call()


@right
async def wait_for_quiescence() -> None:
    weft.Array(Sleeper, 2).compute()
    await weft.quiescence()


async def run_wrong(function: Callable[[], Any], texts: list[str]) -> None:
    function()
    until = time.monotonic() + 10
    report = ""
    while time.monotonic() < until:
        report = await _core._waits_report(True)
        if all(text in report for text in texts):
            return
    missing = [text for text in texts if text not in report]
    print(f"WRONG {function.__name__}: the report lacks {missing}:\n{report}", flush=True)


def main() -> None:
    kind, *names = sys.argv[1:]
    if kind == "wrong":
        for name in names or WRONG:
            function, texts = WRONG[name]
            weft.run(functools.partial(run_wrong, function, texts))
    else:
        for name in names or RIGHT:
            weft.run(RIGHT[name])
    if weft.my_pe() == 0:
        print("done", flush=True)


if __name__ == "__main__":
    main()
