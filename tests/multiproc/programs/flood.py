"""Floods in Python, as programs/flood.cpp: flood.py WAY NUMBER [LIMIT_MIB [SIZE_BYTES [GATE]]].

GATE is a file that this program makes, see Flooder.loop_runs().
"""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import weft

WAY = sys.argv[1]
NUMBER = int(sys.argv[2])
LIMIT_MIB = int(sys.argv[3]) if len(sys.argv) > 3 else 0
SIZE = int(sys.argv[4]) if len(sys.argv) > 4 else 8
GATE = Path(sys.argv[5]) if len(sys.argv) > 5 else None


class Flooder(weft.Chare):
    def __init__(self) -> None:
        self.taken = 0
        self.sum = 0
        self.other = self.proxy[1 - self.index] if weft.num_pes() > 1 else self.proxy[0]
        if LIMIT_MIB > 0:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + (LIMIT_MIB << 20)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    def take(self, value: int) -> None:
        self.taken += 1
        self.sum += value

    def result(self) -> tuple[int, int]:
        return self.taken, self.sum

    def calls(self) -> str:
        return self._flood(self.other.take)

    def own(self) -> str:
        return self._flood(self.proxy[self.index].take)

    def asked(self) -> str:
        return self._flood(self.other.take.call)

    async def loop_runs(self) -> str:
        """Calls wait for a PE that waits for a coroutine of this PE's event loop."""
        opened = weft.asyncio_future(open_gate())
        self.other.wait_for_gate()
        error = self._flood(self.other.take)
        await opened
        return error

    def wait_for_gate(self) -> None:
        assert GATE is not None
        while not GATE.exists():
            time.sleep(0.001)

    def interrupted(self) -> str:
        """Ctrl-C, here from an alarm, while a call waits for a PE that waits for a gate."""

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        self.other.wait_for_gate()
        try:
            signal.setitimer(signal.ITIMER_REAL, 1)
            return self._flood(self.other.take)
        except KeyboardInterrupt:
            print("the loop was interrupted", flush=True)
            raise

    def in_loop(self) -> str:
        """Awaited calls inside an event loop on the PE's thread, which cannot wait for Weft."""

        async def calls() -> None:
            for i in range(NUMBER):
                await self.other.take(i)

        asyncio.run(calls())
        return ""

    def _flood(self, call: Callable[[int], object]) -> str:
        try:
            for i in range(NUMBER):
                call(i)
        except weft.Error as error:
            return str(error)
        return ""

    async def awaited(self) -> str:
        for i in range(NUMBER):
            await self.other.take(i)
        return ""

    async def stream(self) -> str:
        channel = weft.Channel(self, self.other)
        data = np.ones(SIZE, np.uint8)
        for _ in range(NUMBER):
            await channel.send(data)
        return ""

    async def receive(self) -> str:
        channel = weft.Channel(self, self.other)
        data = np.zeros(SIZE, np.uint8)
        await weft.sleep(0.2)
        for _ in range(NUMBER):
            await channel.recv(into=data)
            self.take(int(data[0]))
        return ""


async def open_gate() -> None:
    assert GATE is not None
    await asyncio.sleep(0.2)
    GATE.touch()


async def main() -> None:
    flooders = weft.Group(Flooder)
    await flooders.result.call()
    kind, _, direction = WAY.partition("-")
    senders = {"back": [1], "mutual": [0, 1]}.get(direction, [0])
    ends = [getattr(flooders[pe], kind).call() for pe in senders]
    if kind == "stream":
        ends += [flooders[1 - pe].receive.call() for pe in senders]
    for end in ends:
        if error := await end:
            print(error)
    await weft.quiescence()
    for pe in range(weft.num_pes()):
        taken, total = await flooders[pe].result.call()
        print(f"PE {pe} took {taken}, sum {total}")


weft.run(main)
