"""Channels whose ends are host memory, device memory, or one of each; checks itself.

The devices are emulated; with the argument `cuda` there are CUDA devices besides, without kernels.
"""

import gc
import itertools
import sys

import numpy as np

import weft

KINDS = (
    ("host", "cuda:0", "cuda:1", "emulated:1") if "cuda" in sys.argv else ("host", "emulated:0", "emulated:1")
)
# Around the limits of copying at the call, of eager messages, and of one chunk of a staged copy.
SIZES = (0, 1, 500, 513, 8192, 300_001)


async def filled(data, kind):
    """`data` in memory of a kind."""
    array = weft.DeviceArray(data.shape, data.dtype, kind)
    return await array.copy_from(data)


def data_of(size):
    return np.random.default_rng(size).integers(0, 2**60, size)


def add_one(array):
    array += 1


async def failure_of(operation):
    try:
        await operation
    except weft.Error as error:
        return str(error)
    raise AssertionError("it did not fail")


class End(weft.Chare):
    async def exchange(self, peer, first):
        """Every pair of kinds, every size, receives in order."""
        channel = weft.Channel(self, peer)
        for mine, theirs in itertools.product(KINDS, KINDS):
            kind = mine if first else theirs
            sends = [channel.send(await filled(data_of(size), kind)) for size in SIZES]
            for size in SIZES:
                into = weft.DeviceArray(size, "i8", kind)
                assert await channel.recv(into=into) is into
                assert np.array_equal(await into.to_host(), data_of(size)), (kind, size)
            for send in sends:
                await send

    async def numpy_and_device(self, peer, first):
        channel = weft.Channel(self, peer, 1)
        data = np.arange(100_000.0)
        device = await filled(data, "emulated:0")
        if first:
            await channel.send(device)
            await channel.recv(into=device[:10])
            assert (await device.to_host())[:11].tolist() == [-1.0] * 10 + [10.0]
        else:
            into = np.zeros(100_000)
            await channel.recv(into=into)
            assert np.array_equal(into, data)
            await channel.send(np.full(10, -1.0))

    async def behind_a_stream(self, peer, first):
        """A send takes the result of the stream's kernels; received data is visible to kernels."""
        channel = weft.Channel(self, peer, 2)
        stream = weft.Stream("emulated:1")
        array = await filled(np.zeros(1000), "emulated:1")
        for _ in range(5):
            if first:
                weft.emulated.launch(add_one, array, stream=stream)
                await channel.send(array.on(stream))
                await channel.recv(into=array.on(stream))
            else:
                await channel.recv(into=array)
                await weft.emulated.launch(add_one, array)
                await channel.send(array)
        if first:
            assert (await array.to_host()).tolist() == [10.0] * 1000

    async def freed(self, peer, first):
        """Memory without a Python reference is kept until the operations that use it are over."""
        channel = weft.Channel(self, peer, 3)
        if first:
            weft.emulated.set_faults(polls_per_copy=50)
            for i in range(4):
                channel.send(await filled(np.full(50_000, i), "emulated:0"))
                gc.collect()
                weft.DeviceArray(50_000, "i8", "emulated:0")  # would take the place of the first
            weft.emulated.set_faults()
        into = weft.DeviceArray(50_000, "i8", "emulated:0")
        for i in range(4):
            if not first:
                await channel.recv(into=into)
                assert (await into.to_host() == i).all()

    async def slow(self, peer, first):
        """A slow device holds up its own messages and nothing else."""
        channel = weft.Channel(self, peer, 4)
        quick = weft.Channel(self, peer, 5)
        if first:
            array = await filled(np.ones(10), "emulated:0")
            weft.emulated.set_faults(polls_per_copy=100_000)
            slow = channel.send(array)
            await quick.send(np.arange(3))
            answer = np.zeros(3, int)
            await quick.recv(into=answer)
            assert answer.tolist() == [0, 1, 2] and not slow.done()
            weft.emulated.set_faults()
            await slow
        else:
            answer = np.zeros(3, int)
            await quick.recv(into=answer)
            await quick.send(answer)
            into = np.zeros(10)
            await channel.recv(into=into)
            assert into.tolist() == [1.0] * 10

    async def failing_receive(self, peer, first):
        channel = weft.Channel(self, peer, 6)
        if first:
            await channel.send(np.ones(10_000))
            return ""
        into = weft.DeviceArray(10_000, float, "emulated:0")
        weft.emulated.set_faults(fail_copy=1)
        message = await failure_of(channel.recv(into=into))
        weft.emulated.set_faults()
        return message

    async def failing_send(self, peer, first):
        """A send that fails ends its receive too, and no other."""
        channel = weft.Channel(self, peer, 8)
        array = weft.DeviceArray(10_000, float, "emulated:0")
        await array.copy_from(np.full(10_000, 1.0 if first else 2.0))
        ready = np.zeros(1)
        if first:
            # Or, on one PE, the copy that fails would be another.
            await channel.recv(into=ready)
            weft.emulated.set_faults(fail_copy=1)
            assert "fault injection" in await failure_of(channel.send(array))
            weft.emulated.set_faults()
            await channel.send(array)
            return ""
        receive = channel.recv(into=array)
        await channel.send(ready)
        message = await failure_of(receive)
        assert (await array.to_host() == 2.0).all()
        await channel.recv(into=array)
        assert (await array.to_host() == 1.0).all()
        return message

    async def wrong_size(self, peer, first):
        channel = weft.Channel(self, peer, 7)
        if first:
            await channel.send(weft.DeviceArray(10, float, "emulated:0"))
            return ""
        return await failure_of(channel.recv(into=weft.DeviceArray(20, float, "emulated:1")))


async def check(a, b):
    for method in ("exchange", "numpy_and_device", "behind_a_stream", "freed", "slow"):
        calls = [getattr(a, method).call(b, True), getattr(b, method).call(a, False)]
        for call in calls:
            await call
    for method, words in (
        ("failing_receive", ["fault injection"]),
        ("failing_send", ["fault injection"]),
        ("wrong_size", ["80 bytes", "160 bytes"]),
    ):
        calls = [getattr(a, method).call(b, True), getattr(b, method).call(a, False)]
        outcome = "".join([await call for call in calls])
        assert all(word in outcome for word in [*words, "the channel End"]), outcome


async def main():
    ends = weft.Array(End, 4)
    await check(ends[0], ends[1])
    await check(ends[0], ends[3])
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
