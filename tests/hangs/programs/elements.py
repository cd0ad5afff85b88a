"""What the programs of waits.py are made of: chares that wait for one another, and helpers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np

import weft

LATE_S = 1.0


class Cell(weft.Chare):
    def other(self) -> Any:
        return self.proxy[1 - self.index]

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

    def contribute_without(self, missing: int, done: Any) -> None:
        if self.index != missing:
            self.contribute(1, weft.Reducer.sum, done)

    def contribute_to_section(self, section: Any, missing: int, done: Any) -> None:
        if self.index != missing:
            self.contribute(1, weft.Reducer.sum, done, section=section)

    async def call_other(self) -> int:
        result: int = await self.other().call_back.call()
        return result

    async def call_back(self) -> int:
        self.never = weft.Future()
        result: int = await self.never
        return result

    async def call_around(self, depth: int) -> None:
        await (self.other().call_around.call(depth - 1) if depth > 0 else self.other().never_true.call())

    @weft.when(lambda self: False)
    def never_true(self) -> None:
        pass

    async def wait_created(self) -> None:
        await weft.Future()

    async def work_with(self, gate: Any) -> None:
        if self.index == 1:
            await gate.enter.call()

    # --- Right ones
    async def work_late(self) -> None:
        if self.index == 1:
            await weft.sleep(LATE_S)
        await self.allreduce(1, weft.Reducer.sum)

    def compute_late(self) -> None:
        if self.index == 1:
            time.sleep(LATE_S)

    def run_program_late(self) -> None:
        if self.index == 1:
            subprocess.run([sys.executable, "-S", "-c", f"import time; time.sleep({LATE_S})"], check=True)

    async def set_late(self, future: Any) -> None:
        if self.index == 1:
            await weft.sleep(LATE_S)
            future.set(1)

    async def contribute_late(self, section: Any, done: Any) -> None:
        if self.index == 1:
            await weft.sleep(LATE_S)
        self.contribute(1, weft.Reducer.sum, done, section=section)

    async def in_thread(self) -> None:
        if self.index == 1:
            done: weft.Future[None] = weft.Future()
            thread = threading.Thread(target=lambda: (time.sleep(LATE_S), done.set()))
            thread.start()
            await done
            thread.join()

    async def in_asyncio(self) -> None:
        if self.index == 1:
            await weft.asyncio_future(asyncio.sleep(LATE_S))

    async def tick(self, times: int) -> None:
        for _ in range(times):
            await weft.sleep(0.1)


class Late(weft.Chare):
    async def created(self) -> None:
        if weft.my_pe() == 1:
            await weft.sleep(LATE_S)

    def number(self) -> int:
        return int(self.index)


class Never(weft.Chare):
    async def created(self) -> None:
        if self.index == 1:
            await weft.Future()


class Gate(weft.Chare):
    def __init__(self) -> None:
        self.is_open = False

    @weft.when(lambda self: self.is_open)
    def enter(self) -> None:
        pass

    def open(self) -> None:
        self.is_open = True


class Store(weft.Chare):
    def __init__(self) -> None:
        self.items: list[int] = []

    @weft.when(lambda self: len(self.items) > 0)
    def take(self) -> int:
        return self.items.pop()

    @weft.when(lambda self: len(self.items) < 2)
    def put(self, item: int) -> None:
        self.items.append(item)


class Lock(weft.Chare):
    def __init__(self) -> None:
        self.held = False

    @weft.when(lambda self: not self.held)
    def take(self) -> None:
        self.held = True

    def release(self) -> None:
        self.held = False


class User(weft.Chare):
    async def use(self, locks: Any, count: int) -> None:
        first, second = locks[self.index], locks[(self.index + 1) % count]
        await first.take.call()
        await self.allreduce()  # all have their first one
        await second.take.call()
        second.release()
        first.release()

    async def take_twice(self, locks: Any) -> None:
        await locks[0].take.call()
        await locks[0].take.call()

    async def hold(self, locks: Any) -> None:
        await locks[0].take.call()
        await weft.sleep(LATE_S if self.index == 0 else 0)
        locks[0].release()


class Walker(weft.Chare):
    """Does not call at_sync, if it is the second one."""

    def __init__(self, done: Any, load_balancing: int) -> None:
        self.done = done

    def step(self) -> None:
        if self.index != 1:
            self.at_sync()

    def resume_from_sync(self) -> None:
        self.contribute(target=self.done)


async def late(value: int) -> int:
    await weft.sleep(LATE_S)
    return value


def cells(count: int = 2) -> Any:
    return weft.Array(Cell, count)
