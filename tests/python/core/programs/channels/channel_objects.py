"""Objects on channels: channel_objects.py MODE; checks itself."""

import gc
import os
import pickle
import struct
import sys
from dataclasses import dataclass

import numpy as np

import weft


@dataclass
class Point:
    name: str
    values: list


class Undecodable:
    def __reduce__(self):
        return int, ("not a number",)


# Encoded in the first message, around its limit of 776 bytes, in a body, copied at once and in place.
VALUES = [
    None,
    7,
    2**80,
    "",
    "x" * 100,
    *("y" * size for size in range(760, 780)),
    b"z" * 5000,
    (1, [2.5, {"k": None}], {3}),
    Point("p", [1, 2]),
    "w" * 1_000_000,
    list(range(3000)),
]


def same(a, b):
    return type(a) is type(b) and a == b


class Sender:
    """Sends an array when it is pickled."""

    def __init__(self, channel, size):
        self.channel, self.text, self.calls = channel, "x" * size, 0

    def __getstate__(self):
        self.calls += 1
        self.channel.send_object(np.full(5000, 7.0))
        return {"text": self.text}


class End(weft.Chare):
    num_ahead = 0

    def peer(self):
        return self.proxy[len(self.proxy) - 1 - self.index]

    async def exchange(self):
        """Both directions at once; the sends are not awaited before the receives."""
        channel = weft.Channel(self, self.peer())
        sends = [channel.send_object(value) for value in VALUES]
        for value in VALUES:
            assert same(await channel.recv_object(), value), value
        for send in sends:
            assert await send is None
        array = np.arange(100_000.0)
        sent = channel.send_object(array)
        array[:] = 0  # a copy was sent
        assert (await channel.recv_object() == np.arange(100_000.0)).all()
        await sent

    async def posted_first(self):
        """Several receives in flight, through two handles of one end; awaited backwards."""
        handles = [weft.Channel(self, self.peer(), 1) for _ in range(2)]
        receives = [handles[i % 2].recv_object() for i in range(len(VALUES))]
        await self.allreduce()
        for value in VALUES:
            handles[0].send_object(value)
        gc.collect()
        for value, receive in reversed(list(zip(VALUES, receives, strict=True))):
            assert same(await receive, value), value

    async def mixed(self):
        """Plain memory and objects share the order of the channel."""
        channel = weft.Channel(self, self.peer(), 2)
        for i in range(20):
            channel.send(np.full(10 * i, i))
            channel.send_object("o" * (i * 20))
        receives = []
        arrays = [np.zeros(10 * i, int) for i in range(20)]
        for array in arrays:
            receives += [channel.recv(into=array), channel.recv_object()]
        for i, array in enumerate(arrays):
            assert await receives[2 * i] is array and (array == i).all()
            assert await receives[2 * i + 1] == "o" * (i * 20)

    async def proxies(self):
        channel = weft.Channel(self, self.peer(), 3)
        future = weft.Future()
        channel.send_object((self.proxy, future))
        proxy, other = await channel.recv_object()
        assert proxy == self.proxy
        other.set(self.index)
        assert await future == self.peer().index

    async def refused(self):
        """What cannot be sent or received leaves the channel as it was."""
        channel = weft.Channel(self, self.peer(), 4)
        for value, words in ((lambda: 0, "an object on"), (weft.nocopy(np.ones(3)), "objects on channels")):
            try:
                channel.send_object(value)
            except weft.Error as error:
                assert words in str(error), error
            else:
                raise AssertionError(value)
        try:
            channel.recv()
        except TypeError as error:
            assert "recv_object()" in str(error), error
        # Plain memory where an object is expected: of any size, that of the largest first message, and none.
        for size in (10, 24, 128, 800, 0, 5000):
            channel.send(np.zeros(size, np.uint8))
        for _ in range(6):
            try:
                await channel.recv_object()
            except weft.Error as error:
                assert "recv_object met plain memory" in str(error), error
            else:
                raise AssertionError("plain memory was taken for an object")
        # Objects where plain memory is expected: elements of two bytes or more never have their size. Bodies
        # are skipped.
        values = ["a" * size for size in range(20)] + ["large" * 1000, np.zeros(5000), [np.zeros(5000)] * 3]
        for value in values:
            size_bytes = 24 + (len(value) + 2 if len(value) < 20 and isinstance(value, str) else 16)
            for into in (np.zeros((size_bytes + d) // 2, np.int16) for d in (-2, 0, 2)):
                channel.send_object(value)
                await self.expect_refusal(channel, into)
        channel.send_object("next" * 1000)
        assert await channel.recv_object() == "next" * 1000
        # Single bytes may have it: check mode tells them from an object.
        into = np.zeros(24 + 7, np.uint8)
        channel.send_object("small")
        if os.environ["WEFT_CHECK"] == "1":
            await self.expect_refusal(channel, into)
        else:
            await channel.recv(into=into)
            assert bytes(into).find(b"small") > 0
        # An object that cannot be unpickled, in its message and in a body.
        for value in (Undecodable(), [Undecodable()] * 100):
            channel.send_object(value)
            try:
                await channel.recv_object()
            except weft.RemoteError as error:
                assert error.type_name == "ValueError" and "not a number" in error.message, error
            else:
                raise AssertionError("the object was unpickled")
        channel.send_object("the end")
        assert await channel.recv_object() == "the end"

    async def expect_refusal(self, channel, into):
        try:
            await channel.recv(into=into)
        except weft.Error:
            return
        raise AssertionError(f"an object was taken for {into.dtype}[{into.size}]")

    async def encoded_once(self):
        """Code of the program runs once for each send, and may send on the same channel."""
        channel = weft.Channel(self, self.peer(), 10)
        for extra in (1, 900):
            for array in (np.zeros(5000), None):
                sender = Sender(channel, extra)
                channel.send_object((sender, array))
                assert sender.calls == 1, sender.calls
                inner = await channel.recv_object()
                assert (inner == 7).all() and len(inner) == 5000
                outer, got = await channel.recv_object()
                assert outer.text == "x" * extra and (got is None or (got == array).all())

    async def flood(self):
        """Large objects that are not received are few, within a PE too: an awaited send waits."""
        channel = weft.Channel(self, self.proxy[self.index ^ 1], 11)
        for i in range(60):
            if self.index % 2 == 0:
                await channel.send_object(np.full(1 << 17, float(i)))  # 1 MiB
                self.ahead(1)
            else:
                assert (await channel.recv_object())[0] == i
                self.ahead(-1)

    def ahead(self, change):
        """The elements 0 and 1 are on one PE."""
        if self.index < 2:
            End.num_ahead += change
            assert End.num_ahead <= 8, End.num_ahead

    async def damaged(self):
        """What the message of an object says is checked: here plain memory pretends to be one."""
        channel = weft.Channel(self, self.peer(), 7)
        mark, room = 0x6A626F77, 776
        no_memory = f"no memory for an object of {2**62} bytes"
        for body, size_bytes, num_arrays, data, words in (
            (0, 2**64 - 1, 0, b"\0", "more bytes than memory can have"),
            (0, 2**62, 0, b"\0", no_memory),
            (2**31, 1000, 0, b"\0", "a number that cannot be"),
            (0, room, 0, b"\xff" * room + b"\0", "arrived damaged"),
            (0, 0, 0, b"\0", "arrived damaged"),
            (0, 1, 0, b"", "met plain memory"),  # fewer bytes than it says
            (0, 1, 0, b"  ", "met plain memory"),  # and more
            (0, 1, 2, b"n" * 9, "met plain memory"),  # without the size of the second array
            (0, 1, 2**29, b"n", "met plain memory"),
            (0, 1, 97, b"n" * 777, "met plain memory"),  # more arrays than a message has
            (0, 1, 1, struct.pack("=Q", 2**62) + b"n", no_memory),
            (2**31, 1, 1, struct.pack("=Q", 1) + b"n", "a number that cannot be"),
        ):
            message = struct.pack("=IIQII", mark, body, size_bytes, num_arrays, 0) + data
            channel.send(np.frombuffer(message, np.uint8))
            try:
                await channel.recv_object()
            except weft.Error as error:
                assert words in f"{getattr(error, 'type_name', '')}: {error}", (words, error)
            else:
                raise AssertionError(words)
        for value in ("small", "large" * 1000):
            channel.send_object(value)
            assert await channel.recv_object() == value

    async def arrays(self):
        """Large arrays, which travel beside the value, are as they were when they were sent."""
        channel = weft.Channel(self, self.peer(), 8)
        square = np.arange(10_000.0).reshape(100, 100)
        values = [
            square,
            np.asfortranarray(square),
            square[::2, ::-1],
            (3, square, {"k": [square + 1, "text"]}),
            [square, square],  # one object
            [square + i for i in range(200)],  # too many for a first message
            [square, "x" * 2000],
            np.arange(4096.0),  # 32 KiB, the least that travels so
            np.zeros(0),
            np.ma.masked_array(square, square > 3),
        ]
        expected = pickle.loads(pickle.dumps(values))
        receives = [channel.recv_object() for _ in values[::2]]
        await self.allreduce()
        for value in values:
            channel.send_object(value)
        await self.allreduce()
        square[:] = -1
        values[1][:] = -1
        receives += [channel.recv_object() for _ in values[1::2]]
        received = [await receive for receive in receives]
        for got, value in zip(received, expected, strict=True):
            assert type(got) is type(value), value
            np.testing.assert_equal(got, value)
        assert received[4][0] is received[4][1]
        first = received[0]
        first += 1  # it is the receiver's
        del receives, received, got
        gc.collect()
        assert (first == expected[0] + 1).all()

    async def many(self):
        """More than the window of a channel."""
        channel = weft.Channel(self, self.peer(), 5)
        if self.index == 0:
            for i in range(3000):
                await channel.send_object([i] * (i % 100))
        else:
            for i in range(3000):
                assert await channel.recv_object() == [i] * (i % 100)

    async def leave_unreceived(self):
        channel = weft.Channel(self, self.proxy[self.index ^ 1], 9)
        channel.send_object("the ends know each other")
        await channel.recv_object()
        for _ in range(3):
            channel.send_object(np.zeros(20_000))
            channel.send_object("x" * 20_000)

    async def wait(self, kind):
        channel = weft.Channel(self, self.peer(), 6)
        if kind == "receive":
            await channel.recv_object()
        elif kind == "drop":
            channel.recv_object()
            await weft.Future()
        else:
            while True:
                await channel.send_object("x" * 100_000)
                channel.send_object([np.zeros(100_000), "x" * 2000])
                await channel.send_object(np.zeros(100_000))


class Alone(weft.Chare):
    """A channel of a chare to itself."""

    async def exchange(self):
        channel = weft.Channel(self, self.proxy[self.index])
        for value in VALUES:
            channel.send_object(value)
            assert same(await channel.recv_object(), value)
        receive = channel.recv_object()
        channel.send_object(self.index)
        assert await receive == self.index
        array = np.arange(10_000) + self.index
        into = np.zeros_like(array)
        sent = channel.send(array)
        assert (await channel.recv(into=into) == array).all()
        await sent
        for i in range(3):
            channel.send_object((i, array + i))
        array[:] = 0
        for i in range(3):
            number, got = await channel.recv_object()
            assert number == i and (got == into + i).all()


async def exchange():
    ends = weft.Array(End, 2, map="round_robin")
    for method in (ends.exchange, ends.posted_first, ends.mixed, ends.proxies, ends.refused, ends.damaged):
        await method.call()
    await ends.arrays.call()
    await ends.many.call()
    await ends.encoded_once.call()
    await weft.Array(End, 4, map="block").flood.call()
    await weft.Array(Alone, 3).exchange.call()
    return "all checked"


class Early(weft.Chare):
    """Sends from its constructor, or from created(), to a chare that is ready."""

    def __init__(self, peer, where):
        self.channel = weft.Channel(self, peer)
        self.where = where
        if where == "constructor":
            self.talk()

    def talk(self):
        self.answer = self.channel.recv_object()
        for value in VALUES:
            self.channel.send_object(value)

    async def created(self):
        if self.where == "created":
            self.talk()

    async def result(self):
        return await self.answer


class EarlyCoroutine(Early):
    async def __init__(self, peer):
        self.channel = weft.Channel(self, peer)
        self.where = "coroutine"
        self.talk()


class Listener(weft.Chare):
    async def listen(self, peer):
        channel = weft.Channel(self, peer)
        for value in VALUES:
            assert same(await channel.recv_object(), value), value
        await channel.send_object("a" * 500)


async def early():
    listeners = await weft.Array(Listener, 3, map="round_robin")
    for i, arguments in enumerate((("constructor",), ("created",), ())):
        peer = listeners[i]
        talker = weft.Singleton(Early if arguments else EarlyCoroutine, 0, args=(peer, *arguments))
        await peer.listen.call(talker)
        assert await talker.result.call() == "a" * 500
    return "all checked"


async def destroy():
    """Waiting receives and sends end with the collection; a receive that was dropped is no failure."""
    for kind in ("receive", "send"):
        ends = weft.Array(End, 2, map="round_robin")
        waiting = [end.wait.call(kind) for end in ends]
        await weft.sleep(0.02)
        await ends.destroy()
        for result in waiting:
            try:
                await result
            except weft.Error as error:
                assert "the collection End" in str(error) and "destroyed" in str(error), error
            else:
                raise AssertionError(kind)
    ends = await weft.Array(End, 2, map="round_robin")
    ends.wait("drop")
    await weft.sleep(0.02)
    await ends.destroy()
    # Large objects that are not received, between two PEs and within one.
    for map_name in ("round_robin", "block"):
        ends = await weft.Array(End, 4, map=map_name)
        await ends.leave_unreceived.call()
        await ends.destroy()
    await weft.quiescence()
    return "all checked"


async def end():
    """The job ends while objects are in flight."""
    ends = weft.Array(End, 2, map="round_robin")
    ends[0].wait("send")
    alone = weft.Array(End, 2)
    alone[1].wait("receive")
    alone[1].wait("drop")
    await weft.sleep(0.02)
    return "all checked"


result = weft.run({"exchange": exchange, "early": early, "destroy": destroy, "end": end}[sys.argv[1]])
if result is not None:
    print(result)
