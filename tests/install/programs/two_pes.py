"""What tests/install/test_clean_systems.py runs on two PEs: calls, channels with arrays, reductions."""

import numpy as np

import weft


class Worker(weft.Chare):
    async def exchange(self):
        channel = weft.Channel(self, self.proxy[1 - self.index])
        mine, theirs = np.full(1000, self.index), np.empty(1000, int)
        sent = channel.send(mine)
        await channel.recv(into=theirs)
        await sent
        return await self.allreduce(int(theirs.sum()), weft.Reducer.sum), weft.my_pe()


async def main():
    print(await weft.Array(Worker, 2).exchange.call())


weft.run(main)
