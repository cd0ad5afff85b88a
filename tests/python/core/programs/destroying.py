"""Collections that are destroyed: destroying.py MODE."""

import gc
import resource
import sys
import weakref
from typing import ClassVar

import numpy as np

import weft

MIB = 1 << 20


class Big(weft.Chare):
    """Holds 10 MB and exchanges arrays of that size with a neighbour."""

    def __init__(self, fill):
        self.data = np.full(10_000_000, fill, np.uint8)
        self.right = weft.Channel(self, self.proxy[(self.index + 1) % 4])
        self.left = weft.Channel(self, self.proxy[(self.index - 1) % 4])

    async def exchange(self):
        received = np.empty_like(self.data)
        sent = self.right.send(self.data)
        await self.left.recv(received)
        await sent
        assert (received == self.data).all()
        return await self.allreduce(int(received[0]), weft.Reducer.sum)

    def resident_bytes(self):
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()


async def generations():
    """20 generations of 4 x 10 MB: memory stays as it was after the first ones."""
    resident = []
    for fill in range(20):
        bigs = weft.Array(Big, 4, args=(fill,))
        assert await bigs.exchange.call() == [4 * fill] * 4
        resident.append(max(await bigs.resident_bytes.call()))
        await bigs.destroy()
    assert resident[-1] < resident[3] + 15 * MIB, [size // MIB for size in resident]


class Counter(weft.Chare):
    def __init__(self):
        self.count = 0

    def add(self):
        self.count += 1
        return self.count

    async def wait(self, gate):
        return await gate + self.count

    def give(self, future):
        self.contribute(1, weft.Reducer.sum, future)

    async def take_part(self):
        return await self.allreduce(1, weft.Reducer.sum)

    async def end_all(self):
        await self.proxy.destroy()
        return "went on"

    def keep(self):
        Counter.kept = self
        Counter.channel = weft.Channel(self, self.proxy[self.index - 1 if self.index else 1])

    async def receive(self, peer):
        try:
            await weft.Channel(self, peer).recv(np.zeros(100_000))
        except weft.Error as error:
            return str(error)


class User(weft.Chare):
    async def use(self, counters):
        try:
            await counters[0].add.call()
        except weft.Error as error:
            return str(error)

    def use_kept(self):
        texts = []
        for use in (lambda: Counter.kept.index, lambda: Counter.kept.allreduce(1, weft.Reducer.sum)):
            try:
                use()
            except weft.Error as error:
                texts.append(str(error))
        return texts

    async def use_channel(self):
        try:
            await Counter.channel.send(np.zeros(10))
        except weft.Error as error:
            text = str(error)
        Counter.channel = None
        return text


async def error_of(awaitable):
    try:
        await awaitable
    except weft.Error as error:
        return str(error)
    return None


def raised_by(call):
    try:
        call()
    except weft.Error as error:
        return str(error)
    return None


async def proxies():
    counters = weft.Array(Counter, 5)
    users = weft.Group(User)
    await counters.add.call()
    await counters.destroy()
    for use in (
        counters[0].add,
        counters[4].add,
        counters.add,
        counters[1].add.call,
        counters.add.call,
        counters.destroy,
    ):
        assert "the collection Counter has been destroyed" in raised_by(use), use
    assert counters.shape == (5,)
    for text in [await user.use.call(counters) for user in users]:
        assert "Counter has been destroyed" in text, text
    single = weft.Singleton(Counter, weft.num_pes() - 1)
    await single.add.call()
    await single.collection.destroy()
    assert "Counter has been destroyed" in raised_by(single.add)


async def waiting():
    counters = weft.Array(Counter, 4)
    gate = weft.Future()
    waits = counters[0].wait.call(gate)
    sums = [counters[i].take_part.call() for i in range(3)]
    givers = weft.Array(Counter, 4)
    future = weft.Future()
    givers[3].give(future)
    await weft.quiescence()
    await counters.destroy()
    await givers.destroy()
    for unfinished in (*sums, future):
        text = await error_of(unfinished)
        assert "Counter was destroyed before the reduction was complete" in text, text
    gate.set(41)
    assert await waits == 41
    counters = weft.Array(Counter, 3)
    assert await counters[1].end_all.call() == "went on"


async def kept():
    """Python objects that outlive their chares."""
    counters = weft.Array(Counter, max(2, weft.num_pes()), map="round_robin")
    await counters.keep.call()
    users = weft.Group(User)
    await counters.destroy()
    for user in users:
        assert await user.use_kept.call() == ["this chare's collection has been destroyed"] * 2
    for user in users:
        text = await user.use_channel.call()
        assert "the chare of this end has been destroyed" in text, text


async def survivors():
    counters = weft.Array(Counter, 1)
    peers = weft.Singleton(Counter, weft.num_pes() - 1)
    received = counters[0].receive.call(peers)
    await weft.quiescence()
    await peers.collection.destroy()
    text = await received
    assert "the chare at the other end has been destroyed" in text, text


class Watched(weft.Chare):
    alive: ClassVar[weakref.WeakSet] = weakref.WeakSet()

    def __init__(self, counter):
        self.counter = counter
        self.cycle = self
        Watched.alive.add(self)

    def __del__(self):
        self.counter.add()

    @staticmethod
    def _num_alive():
        gc.collect()
        return len(Watched.alive)

    def num_alive(self):
        return self._num_alive()


class Census(weft.Chare):
    def num_alive(self):
        return Watched._num_alive()


async def finalizers():
    """Chares are freed, and their finalizers may call."""
    counter = weft.Singleton(Counter)
    watched = weft.Array(Watched, 6, args=(counter,))
    assert sum(await weft.Group(Census).num_alive.call()) >= 0
    assert max(await watched.num_alive.call()) > 0
    await watched.destroy()
    assert await weft.Group(Census).num_alive.call() == [0] * weft.num_pes()
    await weft.quiescence()
    assert await counter.add.call() == 7


async def late():
    """A call that nothing awaits, to a collection that has been destroyed, ends the job."""
    counters = weft.Array(Counter, 2)
    ended = counters.destroy()
    counters[0].add()  # queued behind the end
    await ended
    await weft.sleep(10)


weft.run(globals()[sys.argv[1]])
print("all checked")
