"""Arrays that are registered with the network, sent and received into again and again; checks itself."""

import gc

import numpy as np
from refusing import refused

import weft

SIZE = 200_000
TIMES = 10

refused("no job is running", weft.register, np.zeros(3))


class End(weft.Chare):
    def __init__(self):
        self.outgoing = weft.register(np.zeros(SIZE))
        self.incoming = weft.register(np.zeros((2, SIZE)))

    async def exchange(self, other):
        channel = weft.Channel(self, self.proxy[other])
        for i in range(TIMES):
            self.outgoing[:] = self.index + i
            sending = channel.send(self.outgoing)
            await channel.recv(into=self.incoming[i % 2])
            await sending
            assert (self.incoming[i % 2] == other + i).all()

    @weft.post_entry("store")
    def post_store(self, array, row):
        array.into(self.incoming[row, : array.shape[0]])

    def store(self, array, row):
        return float(array.sum())

    async def call(self, other):
        self.outgoing[:] = 1
        for i in range(TIMES):
            part = weft.nocopy(self.outgoing[i:])
            assert await self.proxy[other].store.call(part, i % 2) == SIZE - i

    async def dropped(self, other):
        """What is under way keeps the memory, and the registration with it."""
        channel = weft.Channel(self, self.proxy[other], 1)
        sendings = [channel.send(weft.register(np.full(SIZE, float(i)))[i:]) for i in range(TIMES)]
        gc.collect()
        for i in range(TIMES):
            into = np.empty(SIZE - i)
            await channel.recv(into=into)
            assert (into == i).all()
        for sending in sendings:
            await sending


async def main():
    ends = weft.Array(End, 2)
    for method in ("exchange", "call", "dropped"):
        both = [getattr(ends[i], method).call(1 - i) for i in range(2)]
        for each in both:
            await each
    array = np.zeros((3, 4))
    assert weft.register(array) is array
    assert weft.register(array) is array  # twice is allowed
    assert weft.register(np.zeros(0)).size == 0
    refused("is a view", weft.register, array[1:])
    refused("is a view", weft.register, np.frombuffer(b"12345678"))
    refused("not a list", weft.register, [1.0])
    refused("not a DeviceArray", weft.register, weft.DeviceArray(3, float, "emulated"))
    refused("contiguous", weft.register, np.zeros((3, 4), order="F"))
    return array


array = weft.run(main)
# The registration outlives the job as the array does.
if array is not None:
    del array
    gc.collect()
    print("all checked")
