"""States that name the chare itself move; others cannot, and name the attribute. Argument: WHAT."""

import os
import sys
import threading

import weft


class Opaque:
    def __init__(self):
        self.inner = {"deep": threading.Lock()}


def obstacle(what):
    deep = None
    for _ in range(100_000):
        deep = [deep]
    return {
        "lambda": {"name": lambda: 1},
        "lock": [1, {"at": (threading.Lock(),)}],
        "file": open(os.devnull),
        "generator": (i for i in range(3)),
        "object": Opaque(),
        "module": sys,
        "nested": deep,
    }[what]


class Holder(weft.Chare):
    def __init__(self):
        self.harmless = {"a": [1]}

    def take(self, what):
        self.obstacle = obstacle(what)

    def go(self, to_pe):
        self.migrate(to_pe)


class Selfish(weft.Chare):
    """Names itself in its state: in a container, and by its methods."""

    def __init__(self):
        self.me = [self, {"again": self}]
        self.handlers = {"where": self.where, "number": self.number}
        self.value = 7

    def where(self):
        return weft.my_pe()

    def number(self):
        return self.value

    def go(self, to_pe):
        self.migrate(to_pe)

    def check(self):
        assert self.me[0] is self and self.me[1]["again"] is self
        return self.handlers["where"](), self.handlers["number"]()


class Made(weft.Chare):
    """Its __new__ takes arguments."""

    def __new__(cls, value):
        made = super().__new__(cls)
        made.value = value
        return made

    def __init__(self, value):
        pass

    def go(self, to_pe):
        self.migrate(to_pe)

    def get(self):
        return weft.my_pe(), self.value


async def moves():
    last = weft.num_pes() - 1
    selfish, made = weft.Singleton(Selfish), weft.Singleton(Made, args=(5,))
    for pe in (last, 0, last):
        selfish.go(pe)
        made.go(pe)
        await weft.quiescence()
        assert await selfish.check.call() == (pe, 7)
        assert await made.get.call() == (pe, 5)
    print("all checked")


async def fails():
    holder = weft.Singleton(Holder)
    await holder.take.call(sys.argv[1])
    holder.go(1)
    await weft.quiescence()


weft.run(fails if len(sys.argv) > 1 else moves)
