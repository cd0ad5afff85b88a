"""What failed and was not looked at is dropped by another thread while the PE sleeps: argv says how."""

import gc
import sys
import threading

import numpy as np

import weft

MODE = sys.argv[1]


class Pair(weft.Chare):
    def divide(self, x):
        return 1 / x

    async def receive_too_little(self):
        channel = weft.Channel(self, self.proxy[1 - self.index])
        if self.index == 0:
            await channel.send(np.zeros(10))
            return
        operation = channel.recv(into=np.zeros(5))
        while not operation.done():
            await weft.yield_now()
        held = [operation]
        del operation
        drop_while_the_pe_sleeps(held)


def drop_while_the_pe_sleeps(held):
    """The thread gets the interpreter only when the PE's thread gives it up, to sleep."""
    sys.setswitchinterval(1000)
    gc.disable()
    if MODE == "collected":
        held.append(held)
        action = gc.collect
        del held
    else:
        action = held.clear
    may_drop = threading.Semaphore(0)

    def drop():
        may_drop.acquire()
        action()

    threading.Thread(target=drop, daemon=True).start()
    may_drop.release()


async def main():
    pair = weft.Array(Pair, 2)
    if MODE == "operation":
        pair.receive_too_little()
    else:
        future = pair[1].divide.call(0)
        while not future.done():
            await weft.yield_now()
        held = [future]
        del future
        drop_while_the_pe_sleeps(held)
        del held
    await weft.Future()


weft.run(main)
