"""Elements that pass a token on, wait, and send a large array: what `weft run --trace` is to show.

Usage: traced.py ROUNDS [fail]
"""

import sys

import numpy as np

import weft

ROUNDS = int(sys.argv[1])


class Cell(weft.Chare):
    def token(self, left, ended):
        if left:
            self.proxy[1 - self.index].token(left - 1, ended)
        else:
            ended.set(None)

    async def wait(self):
        await self.proxy[1 - self.index].answer.call()

    def answer(self): ...

    async def exchange(self):
        channel = weft.Channel(self, self.proxy[1 - self.index])
        if self.index == 0:
            await channel.send(np.ones(1 << 18))
        else:
            await channel.recv(into=np.empty(1 << 18))


async def main():
    cells = weft.Array(Cell, 2)
    ended = weft.Future()
    cells[0].token(ROUNDS, ended)
    await ended
    await cells.wait.call()
    await cells.exchange.call()
    if "fail" in sys.argv:
        raise ValueError("the trace is written all the same")


weft.run(main)
