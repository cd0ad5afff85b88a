"""A token goes round a ring of chares; then each chare sends its square to the next one over a channel.

weft run -n 2 examples/02_ring/ring.py
"""

import numpy as np

import weft

SIZE = 8


class Ring(weft.Chare):
    def token(self, hops_left, arrived):
        if hops_left == 0:
            arrived.set(self.index)
        else:
            self.proxy[(self.index + 1) % SIZE].token(hops_left - 1, arrived)

    async def pass_square(self):
        to_next = weft.Channel(self, self.proxy[(self.index + 1) % SIZE])
        from_previous = weft.Channel(self, self.proxy[(self.index - 1) % SIZE])
        to_next.send(np.array([self.index**2]))
        received = await from_previous.recv(into=np.zeros(1, dtype=int))
        return await self.allreduce(received[0], weft.Reducer.sum)


async def main():
    ring = weft.Array(Ring, SIZE)
    arrived = weft.Future()
    ring[0].token(3 * SIZE, arrived)
    print("the token ended at chare", await arrived)
    sums = await ring.pass_square.call()
    print("every chare knows the sum of squares:", sums[0])


weft.run(main)
