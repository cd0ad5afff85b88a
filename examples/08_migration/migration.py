"""A chare that goes to the data: a collector visits every PE, reads what is stored there, and takes it along.

weft run -n 2 examples/08_migration/migration.py
"""

import numpy as np

import weft


class Store(weft.Chare):
    """One for each PE, with numbers that are too many to send."""

    def __init__(self):
        self.numbers = np.arange(100_000) + self.index

    def extremes(self):
        return int(self.numbers.min()), int(self.numbers.max())


class Collector(weft.Chare):
    def __init__(self, stores, done):
        self.stores = stores
        self.done = done
        self.found = {}  # travels with the chare, as all its attributes do
        self.proxy.read()

    async def read(self):
        here = weft.my_pe()
        self.found[here] = await self.stores[here].extremes.call()  # a call on this PE sends nothing
        self.proxy.go_on()

    def go_on(self):  # not async: a method that waits cannot move its chare
        if weft.my_pe() + 1 < weft.num_pes():
            self.migrate(weft.my_pe() + 1)  # when this method has returned
        else:
            self.done.set(self.found)

    def migrated(self):
        self.proxy.read()


async def main():
    stores = await weft.Group(Store)
    done = weft.Future()
    weft.Singleton(Collector, 0, args=(stores, done))
    for pe, (least, greatest) in (await done).items():
        print(f"PE {pe} stores {least} to {greatest}")


weft.run(main)
