"""Messages that streams order: a ring of chares whose values go round. Prints "all checked".

queued.py loop|graph|exchange|wait|die|moves SIZE KIND
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import weft

MODE = sys.argv[1]
SIZE = int(sys.argv[2])
KIND = sys.argv[3]
STEPS = 12


def add_from_both(mine: Any, left: Any, right: Any) -> None:
    mine += left
    mine += right


class EmulatedQueue:
    """A stream, its kernels and its graphs."""

    def __init__(self) -> None:
        self.stream: Any = weft.Stream(KIND)

    def launch(self, *arrays: weft.DeviceArray) -> None:
        weft.emulated.launch(add_from_both, *arrays, stream=self.stream)

    def launch_often(self, queue: Callable[[], None], count: int) -> None:
        with weft.emulated.capture(self.stream) as graph:
            queue()
        for _ in range(count):
            graph.launch(self.stream)


class CudaQueue:
    """The same by CuPy."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.stream: Any = cupy.cuda.Stream(non_blocking=True)
        # To load a kernel may wait for the device, and so for a stream that waits for a chare of this PE.
        with self.stream:
            add_from_both(*(cupy.zeros(1, np.int64) for _ in range(3)))

    def launch(self, *arrays: weft.DeviceArray) -> None:
        # An array that names no stream: CuPy waits for none.
        with self.stream:
            add_from_both(*(self.cupy.asarray(array) for array in arrays))

    def launch_often(self, queue: Callable[[], None], count: int) -> None:
        queue()  # compiles what a capture cannot
        self.stream.begin_capture()
        queue()
        self.graph = self.stream.end_capture()
        for _ in range(count - 1):
            self.graph.launch(self.stream)


class Block(weft.Chare):
    """In each step its value becomes the sum of its own and its two neighbours'."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.queue = CudaQueue() if KIND == "cuda" else EmulatedQueue()
        self.stream = self.queue.stream
        self.values = weft.DeviceArray((SIZE,), np.int64, KIND)
        self.sides = []
        for side in (0, 1):  # the left neighbour, and the right one
            peer = self.proxy[(self.index + (1 if side else -1)) % count]
            landings = [weft.DeviceArray((SIZE,), np.int64, KIND) for _ in range(2)]
            # The channel between i and i + 1 has the number i; two chares may have two.
            number = self.index if side else (self.index - 1) % count
            self.sides.append(weft.QueuedChannel(self, peer, landings, id=number))

    async def connect(self) -> None:
        await self.values.copy_from(np.full(SIZE, self.index + 1, np.int64))
        connecting = [side.connect() for side in self.sides]
        for one in connecting:
            await one

    def queue_steps(self, count: int) -> None:
        for _ in range(count):
            if MODE == "loop":
                for side in self.sides:
                    side.send(self.values, self.stream)
                left, right = (side.recv(self.stream) for side in self.sides)
            else:
                left, right = weft.QueuedChannel.exchange_all(self.sides, [self.values] * 2, self.stream)
            self.queue.launch(self.values, left, right)

    async def run(self) -> list[int]:
        if MODE == "graph":
            self.queue.launch_often(lambda: self.queue_steps(2), STEPS // 2)
        else:
            self.queue_steps(STEPS)
        for side in self.sides:
            await side.over()
        await weft.stream_done(self.stream)
        host = await self.values.to_host()
        assert (host == host[0]).all(), host
        return [int(host[0])]

    async def close(self) -> None:
        closing = [side.close() for side in self.sides]
        for one in closing:
            await one
        del self.queue, self.stream, self.sides  # they do not move

    def wait(self) -> None:
        """Queues a wait for a message that is never sent."""
        self.sides[0].recv(self.stream)

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def misuse(self) -> list[str]:
        side = self.sides[0]
        errors = []
        for call in (
            lambda: side.send(weft.DeviceArray((SIZE + 1,), np.int64, KIND), self.stream),
            lambda: side.send(np.zeros(SIZE, np.int64), self.stream),
            lambda: weft.QueuedChannel(self, self.proxy[0], [self.values]),
            lambda: weft.QueuedChannel(self, self.proxy[0], [np.zeros(3), np.zeros(3)]),
            lambda: weft.QueuedChannel(self, self.proxy[0], id=-1),
            lambda: weft.QueuedChannel(5, self.proxy[0]),
            lambda: side.recv("no stream"),
            lambda: weft.QueuedChannel.exchange_all([side], [self.values] * 2),
            lambda: weft.QueuedChannel.exchange_all([self], [self.values]),
            lambda: weft.QueuedChannel.exchange_all([side, side], [self.values] * 2, self.stream),
            lambda: side.exchange(np.zeros(SIZE, np.int64), self.stream),
        ):
            try:
                call()
            except weft.Error as error:
                errors.append(str(error))
        return errors

    def go(self, pe: int) -> str:
        try:
            self.migrate(pe)
        except weft.Error as error:
            return str(error)
        return ""


def expected(count: int) -> list[int]:
    values = np.arange(1, count + 1, dtype=np.int64)
    for _ in range(STEPS):
        values = values + np.roll(values, 1) + np.roll(values, -1)
    return [int(value) for value in values]


async def main() -> None:
    count = 2 * weft.num_pes() + 1
    blocks = weft.Array(Block, count, args=[count])
    await blocks.connect.call()
    if MODE in ("loop", "graph", "exchange"):
        results = await blocks.run.call()
        assert [one[0] for one in results] == expected(count), results
        await weft.quiescence()
    elif MODE == "wait":
        await blocks[0].wait.call()
        print("all checked", flush=True)
        weft.exit(0)
        return
    elif MODE == "die":
        await blocks[0].wait.call()
        blocks[count - 1].die()
        await weft.sleep(60)
    elif MODE == "moves":
        errors = await blocks[0].misuse.call()
        for error, part in zip(
            errors,
            (
                f"a message of {8 * SIZE + 8} bytes does not fit: landings have {8 * SIZE}",
                "a message is on host",
                "1 landing: give it 2 to 8",
                "host is no device",
                "an id is from 0",
                "takes the chare that this end belongs to, not a int",
                "QueuedChannel.recv",
                "1 channels and 2 arrays",
                "a channel is not a",
                "is twice in an exchange",
                "a message is on host",
            ),
            strict=True,
        ):
            assert part in error, error
        assert "is a queued channel that is connected" in await blocks[0].go.call(weft.num_pes() - 1)
        await blocks.close.call()
        assert await blocks[0].go.call(weft.num_pes() - 1) == ""
    print("all checked")


weft.run(main)
