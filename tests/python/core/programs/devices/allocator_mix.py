"""Messages between memories of every allocator, over channels; compares every byte.

    allocator_mix.py emulated|cupy|torch [MESSAGES]

Both PEs send and receive at the same time. Sizes, allocators, streams and who comes first are random. PE 0
prints the paths that were taken. Exits with 77 where the library or a GPU for it is missing.
"""

import contextlib
import importlib.util
import os
import random
import sys

import numpy as np

import weft

LIBRARY = sys.argv[1]
MESSAGES = int(sys.argv[2]) if len(sys.argv) > 2 else 200
BATCH = 8
MISSING = 77
LARGEST = 70_000 if LIBRARY == "emulated" else 36 << 20
SIZES = (0, 1, 2, 7, 255, 256, 257, 16383, 16384, 16385)
LARGE_SIZES = (1 << 20, (1 << 20) + 1, 8 << 20, (8 << 20) - 1, (8 << 20) + 1, 24 << 20, (32 << 20) + 5)
PATTERN = np.random.default_rng(5).integers(0, 256, LARGEST + 1024, np.uint8)


class Emulated:
    allocators = ("default", "refusing", "host")

    def __init__(self, _pe):
        pass

    def stream(self, _number):
        return contextlib.nullcontext()

    def allocate(self, size_bytes, allocator):
        if allocator == "host":
            return np.zeros(size_bytes, np.uint8)
        weft.emulated.set_faults(refuse_exports=allocator == "refusing")
        array = weft.DeviceArray(size_bytes, np.uint8, "emulated")
        weft.emulated.set_faults()
        return array

    async def fill(self, array, offset):
        if isinstance(array, np.ndarray):
            array[:] = PATTERN[offset : offset + array.size]
        else:
            await array.copy_from(PATTERN[offset : offset + array.size].copy())
        return array

    async def is_right(self, array, offset):
        found = array if isinstance(array, np.ndarray) else await array.to_host()
        return np.array_equal(found, PATTERN[offset : offset + array.size])


class Cupy:
    allocators = ("default", "async-pool", "managed")

    def __init__(self, pe):
        import cupy

        self.module = cupy
        cupy.cuda.Device(pe % cupy.cuda.runtime.getDeviceCount()).use()
        self.pools = {
            "default": cupy.cuda.MemoryPool(),
            "async-pool": cupy.cuda.MemoryAsyncPool(),
            "managed": cupy.cuda.MemoryPool(cupy.cuda.malloc_managed),
        }
        self.streams = [cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)]
        self.pattern = cupy.asarray(PATTERN)
        cupy.cuda.Device().synchronize()

    def stream(self, number):
        return self.streams[number % 2]

    def allocate(self, size_bytes, allocator):
        with self.module.cuda.using_allocator(self.pools[allocator].malloc):
            return self.module.zeros(size_bytes, self.module.uint8)

    async def fill(self, array, offset):
        array[:] = self.pattern[offset : offset + array.size]
        return array

    async def is_right(self, array, offset):
        return bool((array == self.pattern[offset : offset + array.size]).all())


class Torch:
    allocators = ("default",)

    def __init__(self, pe):
        os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("torch has no GPU here")
        self.module = torch
        torch.cuda.set_device(pe % torch.cuda.device_count())
        self.pattern = torch.from_numpy(PATTERN.copy()).cuda()
        self.streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
        torch.cuda.synchronize()

    def stream(self, number):
        return self.module.cuda.stream(self.streams[number % 2])

    def allocate(self, size_bytes, _allocator):
        return self.module.zeros(size_bytes, dtype=self.module.uint8, device="cuda")

    async def fill(self, array, offset):
        array.copy_(self.pattern[offset : offset + array.numel()])
        return array

    async def is_right(self, array, offset):
        return bool(self.module.equal(array, self.pattern[offset : offset + array.numel()]))


def size_of(common):
    """Drawn from a generator that both PEs have in the same state."""
    kind = common.random()
    if kind < 0.4:
        return common.choice(SIZES)
    if kind < 0.8 or LIBRARY == "emulated":
        return common.randrange(min(LARGEST, 300_000))
    return common.choice(LARGE_SIZES) if kind < 0.9 else common.randrange(LARGEST)


class Peer(weft.Chare):
    async def play(self):
        pe = weft.my_pe()
        self.library = {"emulated": Emulated, "cupy": Cupy, "torch": Torch}[LIBRARY](pe)
        channel = weft.Channel(self, self.proxy[1 - self.index])
        common = random.Random(7)
        own = random.Random(pe)
        # Long-lived buffers can be mapped; others are made for one message.
        self.kept = {name: self.library.allocate(LARGEST + 1024, name) for name in self.library.allocators}
        for first in range(0, MESSAGES, BATCH):
            # Libraries export their current stream with each array.
            with self.library.stream(own.randrange(2)):
                await self.exchange(channel, common, own, first)
        if LIBRARY == "emulated":
            await self.exchange_posted(channel)
        return [tuple(use) for use in weft.transport_use()]

    def buffer(self, own, size_bytes, offset, used):
        """Part of a buffer that is kept, unless this batch uses it already, or one of its own."""
        name = own.choice(self.library.allocators)
        if own.random() < 0.6 and name not in used:
            used.add(name)
            return self.kept[name][offset : offset + size_bytes]
        return self.library.allocate(size_bytes, name)

    async def exchange(self, channel, common, own, first):
        sizes = [[size_of(common) for _ in range(BATCH)] for _ in range(2)]
        used = set()
        out, into = [], []
        for i in range(BATCH):
            offset = (first + i) % 1024
            array = self.buffer(own, sizes[self.index][i], offset, used)
            out.append(await self.library.fill(array, offset))
            into.append(self.buffer(own, sizes[1 - self.index][i], offset, used))
        starts = [lambda a=a: channel.send(a) for a in out], [lambda a=a: channel.recv(into=a) for a in into]
        operations = []
        next_start = [0, 0]
        while sum(next_start) < 2 * BATCH:
            way = own.randrange(2) if max(next_start) < BATCH else next_start.index(min(next_start))
            operations.append(starts[way][next_start[way]]())
            next_start[way] += 1
            if own.random() < 0.1:
                await weft.sleep(0.0005)
        for operation in operations:
            await operation
        for i, array in enumerate(into):
            offset = (first + i) % 1024
            if not await self.library.is_right(array, offset):
                raise AssertionError(f"message {first + i} of {sizes[1 - self.index][i]} bytes is wrong")

    async def exchange_posted(self, channel):
        """Messages of PE 0 to receives that are posted already: one by each path, whatever the mix came to.

        The first round may open the stream; the second shows PE 0's kept buffer to PE 1, which can then
        copy out of it.
        """
        rounds = [(1, "default", "default"), (1, "default", "default")]
        rounds += [(0, "default", "default"), (0, "refusing", "default")]
        rounds += [(0, "default", "refusing"), (0, "refusing", "refusing")]
        size_bytes = 20_000
        # Each round has bytes of its own, so what an earlier one left is not taken for them.
        for offset, (sender, source, destination) in enumerate(rounds):
            if self.index == sender:
                await self.library.fill(self.kept[source][:size_bytes], offset)
                await channel.recv_object()
                await channel.send(self.kept[source][:size_bytes])
            else:
                into = self.kept[destination][:size_bytes]
                received = channel.recv(into=into)
                await channel.send_object("posted")
                await received
                if not await self.library.is_right(into, offset):
                    raise AssertionError(f"the message of {source} into {destination} memory is wrong")


async def main():
    peers = weft.Array(Peer, 2)
    uses = await peers.play.call()
    for use in sorted(uses[0]):
        print(*use)


if LIBRARY != "emulated" and importlib.util.find_spec(LIBRARY) is None:
    print(f"{LIBRARY} is not installed", file=sys.stderr)
    sys.exit(MISSING)
weft.run(main)
