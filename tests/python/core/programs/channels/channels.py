"""Channels between chares on one PE and several; checks itself."""

import gc

import numpy as np

import weft

SIZES = (0, 1, 8, 4096, 4097, 65_536, 1_000_003)


class End(weft.Chare):
    def peer(self):
        return self.proxy[len(self.proxy) - 1 - self.index]

    async def exchange(self, peer):
        """Sizes around the limits, both directions at once, several in flight, received in order."""
        channel = weft.Channel(self, peer)
        sent = [np.random.default_rng(size).integers(0, 255, size, dtype=np.uint8) for size in SIZES]
        sends = [channel.send(data) for data in sent]
        for data in sent:
            into = np.full(len(data), 255, dtype=np.uint8)
            assert await channel.recv(into=into) is into
            assert np.array_equal(into, data)
        for send in sends:
            assert await send is None

    async def posted_first(self, peer):
        """Receives are there before the sends; the small sent buffer is reused at once."""
        channel = weft.Channel(self, peer, 1)
        buffers = [np.zeros(4) for _ in range(50)]
        receives = [channel.recv(into=buffer) for buffer in buffers]
        await weft.sleep(0.01)
        out = np.zeros(4)
        for i in range(50):
            out[...] = i
            channel.send(out)
        for i, receive in enumerate(receives):
            assert (await receive == i).all()

    async def dropped(self, peer):
        """Operations and buffers without a Python reference are kept until they are over."""
        channel = weft.Channel(self, peer, id=2)
        for i in range(5):
            channel.send(np.full(200_000, i))
        gc.collect()
        into = np.zeros(200_000, dtype=int)
        for i in range(5):
            await channel.recv(into)
            assert (into == i).all()

    async def callbacks(self, peer):
        channel = weft.Channel(self, peer, 3)
        seen = []
        done = weft.Future()

        def received(operation):
            seen.append(operation.result().tolist())
            if len(seen) == 3:
                done.set(seen)

        for _ in range(3):
            channel.recv(into=np.zeros(2, dtype=np.int32)).then(received)
        for i in range(3):
            channel.send(np.array([i, i + 1], dtype=np.int32))
        assert await done == [[0, 1], [1, 2], [2, 3]]

    async def other_buffers(self, peer):
        channel = weft.Channel(self, peer, 4)
        channel.send(b"bytes")
        channel.send(memoryview(bytearray(b"view")))
        into = bytearray(5)
        assert bytes(await channel.recv(into=into)) == b"bytes"
        assert bytes(await channel.recv(into=memoryview(into)[:4])) == b"view"
        records = np.zeros(2, dtype=[("a", "i4"), ("b", "f8")])
        channel.send(np.array([(1, 2.0), (3, 4.0)], dtype=records.dtype))
        await channel.recv(into=records)
        assert records["b"].tolist() == [2.0, 4.0]

    async def refused(self, peer):
        channel = weft.Channel(self, peer, 5)
        read_only = np.zeros(3)
        read_only.flags.writeable = False
        for call, needle in (
            (lambda: channel.send(np.zeros((4, 4))[:, 1]), "weft.pack(array)"),
            (lambda: channel.recv(into=np.zeros((4, 4))[:, 1]), "contiguous"),
            (lambda: channel.recv(into=read_only), "read-only"),
            (lambda: channel.recv(into=b"abc"), "writable"),
            (lambda: channel.send(5), "no buffer"),
            (lambda: channel.send(np.array([None])), "Python objects"),
            (lambda: weft.Channel(self, self.proxy), "self.proxy[i]"),
        ):
            try:
                call()
            except weft.Error as error:
                assert needle in str(error), error
            else:
                raise AssertionError(f"no error that says {needle}")

    async def wrong_size(self, peer, first):
        channel = weft.Channel(self, peer, 6)
        if first:
            await channel.send(np.zeros(10))
            return "sent"
        outcome = []
        for size in (5,):
            try:
                await channel.recv(into=np.zeros(size))
            except weft.Error as error:
                outcome.append(str(error))
        return outcome[0]

    async def longer(self, peer, first):
        channel = weft.Channel(self, peer, 7)
        if first:
            await channel.send(np.zeros(3))
            return "sent"
        try:
            await channel.recv(into=np.zeros(5))
        except weft.Error as error:
            return str(error)
        return "no error"


async def check(ends, near, far):
    a, b = ends[near], ends[far]
    for method in ("exchange", "posted_first", "dropped", "callbacks", "other_buffers", "refused"):
        calls = [getattr(a, method).call(b), getattr(b, method).call(a)]
        for call in calls:
            await call
    for method, sizes in (("wrong_size", ("80", "40")), ("longer", ("24", "40"))):
        calls = [getattr(a, method).call(b, True), getattr(b, method).call(a, False)]
        outcome = [await call for call in calls]
        assert outcome[0] == "sent" and all(size in outcome[1] for size in sizes), outcome
        assert f"End[{far}]" in outcome[1] and f"End[{near}]" in outcome[1], outcome


async def main():
    ends = weft.Array(End, 6)
    await check(ends, 0, 1)
    await check(ends, 0, 5)
    await check(ends, 4, 2)
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
