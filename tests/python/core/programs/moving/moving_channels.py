"""Channels of chares that move. Prints "all checked".

moving_channels.py random SEED|stencil|handles
"""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

import weft

MODE = sys.argv[1]
SIZES = (1, 14, 512, 513, 9000, 40000)  # of 8 bytes


def numbered(number: int) -> Any:
    """The message with that number: an array in host or device memory, or an object."""
    size = SIZES[number * 5 % len(SIZES)]
    if number % 3 == 0:
        if number % 2:
            return {"number": number, "values": list(range(size % 1000)), "text": "x" * size}
        return {"number": number, "array": np.arange(size), "pair": (np.zeros(size, np.uint8), "text")}
    return np.arange(size, dtype=np.int64) + number


class Walker(weft.Chare):
    """Exchanges numbered messages with its neighbours in a ring, and with itself."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.channels = {peer: weft.Channel(self, self.proxy[peer]) for peer in self.peers()}
        self.sent = dict.fromkeys(self.peers(), 0)
        self.received = dict.fromkeys(self.peers(), 0)
        self.moves = 0

    def peers(self) -> set[int]:
        return {(self.index + 1) % self.count, (self.index - 1) % self.count}

    def migrated(self) -> None:
        self.moves += 1

    # The caller awaits it, so that messages are sent in the order of their numbers.
    async def send(self, peer: int, count: int) -> None:
        for _ in range(count):
            message = numbered(self.sent[peer])
            number = self.sent[peer]
            self.sent[peer] += 1
            if isinstance(message, dict):
                self.channels[peer].send_object(message)
            elif number % 2:
                array = weft.DeviceArray(message.shape, message.dtype, "emulated")
                self.channels[peer].send(await array.copy_from(message))
            else:
                self.channels[peer].send(message)

    async def receive(self, peer: int, count: int) -> None:
        for _ in range(count):
            number = self.received[peer]
            self.received[peer] += 1
            expected = numbered(number)
            if isinstance(expected, dict):
                np.testing.assert_equal(await self.channels[peer].recv_object(), expected)
            else:
                if number % 5 == 0:
                    device = weft.DeviceArray(expected.shape, expected.dtype, "emulated")
                    got = await (await self.channels[peer].recv(into=device)).to_host()
                else:
                    got = await self.channels[peer].recv(into=np.zeros_like(expected))
                assert (got == expected).all(), (self.index, peer, number)

    def go(self, to_pe: int) -> bool:
        try:
            self.migrate(to_pe)
        except weft.Error as error:
            assert "that wait" in str(error), error
            return False
        return True

    def go_on(self) -> None:
        self.migrate((weft.my_pe() + 1) % weft.num_pes())

    def num_moves(self) -> int:
        return self.moves


async def random_traffic() -> None:
    seed = int(sys.argv[2])
    print(f"seed {seed}")
    chance = random.Random(seed)
    count = chance.randrange(3, 7)
    walkers = weft.Array(Walker, count, args=[count])
    owed: list[tuple[int, int, int]] = []
    receiving = []
    for step in range(200):
        # Whether a walker waits, and then stays, is a matter of time. Here no receive waits for what is not
        # sent yet, so this walker moves, with the messages that were not asked for.
        if step % 20 == 19:
            while receiving:
                await receiving.pop()
            await walkers[chance.randrange(count)].go_on.call()
        action = chance.randrange(10)
        if action < 3:
            index = chance.randrange(count)
            peer = (index + chance.choice((1, count - 1))) % count
            messages = chance.randrange(1, 6)
            await walkers[index].send.call(peer, messages)
            owed.append((peer, index, messages))
        elif action < 6 and owed:
            peer, index, messages = owed.pop(0)
            receiving.append(walkers[peer].receive.call(index, messages))
        elif action < 9:
            await walkers[chance.randrange(count)].go.call(chance.randrange(weft.num_pes()))
        else:
            await weft.sleep(chance.random() / 500)
    receiving += [walkers[peer].receive.call(index, messages) for peer, index, messages in owed]
    for one in receiving:
        await one
    await weft.quiescence()
    if weft.num_pes() > 1:
        # Ten times a walker goes on. If it is told to go elsewhere before it has left, that is one move.
        assert sum(await walkers.num_moves.call()) >= 5


class Block(weft.Chare):
    """One part of a line, whose borders go to its neighbours in each iteration."""

    def __init__(self, count: int, iterations: int, each: int) -> None:
        self.count, self.iterations, self.each = count, iterations, each
        self.values = np.full(500, float(self.index))
        peers = [self.index - 1, self.index + 1]
        self.sides = [weft.Channel(self, self.proxy[peer]) for peer in peers if 0 <= peer < count]
        self.done = 0
        self.moves = 0
        self.over: Any = None

    def start(self, over: weft.Future[int]) -> None:
        self.over = over
        self.proxy[self.index].iterate()

    async def iterate(self) -> None:
        for _ in range(self.each):
            sends = [side.send(self.values) for side in self.sides]
            borders = [await side.recv(into=np.empty_like(self.values)) for side in self.sides]
            for send in sends:
                await send
            self.values = (self.values + sum(borders)) / (1 + len(borders))
            self.done += 1
        self.at_sync()

    def migrated(self) -> None:
        self.moves += 1

    def resume_from_sync(self) -> None:
        if self.done < self.iterations:
            self.proxy[self.index].iterate()
        else:
            self.contribute(self.moves, weft.Reducer.sum, target=self.over)

    def result(self) -> float:
        return float(self.values.sum())


def expected(count: int, iterations: int) -> list[float]:
    values = np.array([float(i) for i in range(count)])
    for _ in range(iterations):
        padded = np.concatenate(([0.0], values, [0.0]))
        neighbours = np.full(count, 3.0)
        neighbours[0] -= 1
        neighbours[-1] -= 1
        values = (padded[:-2] + padded[1:-1] + padded[2:]) / neighbours
    return [500 * value for value in values]


async def stencil() -> None:
    count, iterations, each = 8, 20, 4
    blocks = weft.Array(Block, count, args=[count, iterations, each])
    over: weft.Future[int] = weft.Future()
    blocks.start(over)
    moves = await over
    assert np.allclose(await blocks.result.call(), expected(count, iterations))
    # The strategy moves each block in each step.
    assert moves == (count * iterations // each if weft.num_pes() > 1 else 0), moves


class Handle(weft.Chare):
    def __init__(self) -> None:
        self.own = weft.Channel(self, self.proxy[self.index])

    def fill(self) -> None:
        self.own.send_object("unread " * 100)

    def go(self, to_pe: int) -> None:
        left_behind.append(self.own)
        self.migrate(to_pe)

    def where(self) -> int:
        return weft.my_pe()

    async def read(self) -> Any:
        assert weft.Channel(self, self.proxy[self.index]) is not None
        return await self.own.recv_object()


left_behind: list[weft.Channel] = []


class Behind(weft.Chare):
    """What the handle says that the object has left behind on this PE."""

    def text(self) -> str:
        if not left_behind:
            return ""
        try:
            left_behind[0].send(b"abc")
        except weft.Error as error:
            return str(error)
        return ""


async def handles() -> None:
    handle = weft.Array(Handle, 1)
    await handle
    await handle[0].fill.call()
    for pe in range(weft.num_pes()):  # it is on one of them
        await handle[0].go.call(pe)
        while await handle[0].where.call() != pe:  # a later call would take the place of this one
            pass
    assert await handle[0].read.call() == "unread " * 100
    await weft.quiescence()
    texts = await weft.Group(Behind).text.call()
    assert any("has moved to another PE" in text for text in texts), texts


async def main() -> None:
    await {"random": random_traffic, "stencil": stencil, "handles": handles}[MODE]()
    print("all checked")


weft.run(main)
