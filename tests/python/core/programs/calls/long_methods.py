"""Methods that keep their PE busy for more than 100 ms at a time, and one that only waits so long."""

import time

import weft

LONG_S = 0.12


class Slow(weft.Chare):
    def computes(self):
        time.sleep(LONG_S)

    async def computes_behind_a_wait(self):
        await weft.sleep(0)
        time.sleep(LONG_S)
        await weft.sleep(0)
        time.sleep(LONG_S)


async def main():
    slow = weft.Group(Slow)
    await slow.computes.call()
    await slow.computes_behind_a_wait.call()


weft.run(main)
