"""An array on GPU 0 on every PE, which is not the own one of PE 1; over the stand-in driver."""

from standins import CudaArray

import weft


class Sender(weft.Chare):
    def __init__(self):
        self.memory = weft.DeviceArray(64, "u1", "cuda:0")

    def array(self):
        return CudaArray(shape=(64,), typestr="|u1", data=(self.memory.ptr, False), version=3)

    async def exchange(self):
        channel = weft.Channel(self, self.proxy[1 - self.index])
        for _ in range(3):
            sent = channel.send(self.array())
            await channel.recv(into=weft.DeviceArray(64, "u1", "cuda"))
            await sent


async def main():
    await weft.Array(Sender, 2).exchange.call()


weft.run(main)
