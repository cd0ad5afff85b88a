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
        assert "the collection Counter of this end has been destroyed" in text, text


async def survivors():
    counters = weft.Array(Counter, 1)
    peers = weft.Singleton(Counter, weft.num_pes() - 1)
    received = counters[0].receive.call(peers)
    await weft.quiescence()
    await peers.collection.destroy()
    text = await received
    assert "the collection Counter at the other end has been destroyed" in text, text


class Party(weft.Chare):
    """Waits on channels for what never comes."""

    def __init__(self, size):
        self.room = np.zeros(size)

    async def receive(self, peer):
        channel = weft.Channel(self, peer)
        while True:
            await channel.recv(self.room)

    async def exchange(self, peer):
        channel = weft.Channel(self, peer)
        while True:
            sent = channel.send(np.ones_like(self.room))
            await channel.recv(self.room)
            await sent

    async def use_later(self, peer, begun, gate):
        channel = weft.Channel(self, peer)
        begun.set()
        await gate
        codes = []
        for use in (channel.recv, channel.send, lambda room: weft.Channel(self, peer, 1)):
            try:
                use(self.room)
            except weft.Error as error:
                codes.append((error.code, str(error)))
        return codes

    async def fail(self, gate):
        await gate
        raise ValueError("a mistake")

    def make_end(self, peer):
        weft.Channel(self, peer)

    def touch(self):
        return self.index


async def methods():
    """What waits on channels ends with its collection, without a word if nothing awaits it."""
    last = weft.num_pes() - 1
    for size in (10, 1000, 200_000):
        # Two chares that receive from each other.
        parties = weft.Array(Party, 4, args=(size,), map="round_robin")
        for i in range(3):
            parties[i].exchange(parties[i ^ 1])
        awaited = parties[3].receive.call(parties[2])
        await parties.touch.call()
        await parties.destroy()
        text = await error_of(awaited)
        assert "the collection Party" in text and "has been destroyed" in text, text

        # A server that is destroyed before its clients, one of which never made its end.
        server = weft.Singleton(Party, last, args=(size,))
        clients = weft.Array(Party, 2, args=(size,))
        for client in clients:
            server.receive(client)
        await clients[1].make_end.call(server)
        await weft.quiescence()
        await server.collection.destroy()
        await clients.touch.call()
        await clients.destroy()

        # Both sides at once, each in a loop that nothing awaits.
        for _ in range(5):
            left = weft.Array(Party, 3, args=(size,), map="round_robin")
            right = weft.Array(Party, 3, args=(size,), map="round_robin")
            for i in range(3):
                left[i].exchange(right[2 - i])
                right[2 - i].exchange(left[i])
            await weft.gather(left.touch.call(), right.touch.call())
            await weft.gather(left.destroy(), right.destroy())

    # A method that waits for something else than the channel.
    party = weft.Singleton(Party, args=(10,))
    other = weft.Singleton(Party, last, args=(10,))
    begun, gate = weft.Future(), weft.Future()
    used = party.use_later.call(other, begun, gate)
    await begun
    await party.collection.destroy()
    gate.set()
    codes = await used
    assert [code for code, _ in codes] == ["closed"] * 3, codes
    assert all("the collection Party" in text for _, text in codes), codes
    await weft.quiescence()


async def other_exception():
    """An exception of another kind still ends the job."""
    party = weft.Singleton(Party, args=(10,))
    gate = weft.Future()
    party.fail(gate)
    await party.collection.destroy()
    gate.set()
    await weft.sleep(10)


async def survivor_in_a_loop():
    """So does the end of a channel that ends the loop of a chare that lives on."""
    parties = weft.Array(Party, 1, args=(10,))
    others = weft.Array(Party, 1, args=(10,))
    others[0].receive(parties[0])
    parties[0].make_end(others[0])
    await weft.quiescence()
    await parties.destroy()
    await weft.sleep(10)


class Lone(weft.Chare):
    """Never made on PE 0."""

    def add(self, number):
        return number


class Elsewhere(weft.Chare):
    async def make(self):
        return await weft.Singleton(Lone, weft.my_pe())


async def refused():
    """A refusal names the method and the class, where there never was an element too."""
    last = weft.num_pes() - 1
    for to_all in (False, True):
        lone = await weft.Singleton(Elsewhere, last).make.call()
        assert await lone.add.call(3) == 3
        ended = lone.collection.destroy()
        # Sent before this PE has heard of the end. Each PE refuses a call to all.
        late = lone.collection.add.call(1) if to_all else lone.add.call(1)
        text = await error_of(late)
        await ended
        called = "Lone.add" if to_all else "Lone[0].add"
        assert f"a call of {called} from PE 0 comes too late: the collection Lone has" in text, text
    try:
        weft.Singleton(Lone).destroy()
    except AttributeError as error:
        assert "proxy.collection.destroy()" in str(error), error
    else:
        raise AssertionError("an element was destroyed")


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
