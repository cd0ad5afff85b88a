"""Attributes of chares are where CPython expects those of an object."""

import dis

import weft


class Counter(weft.Chare):
    def __init__(self):
        self.sum = 0

    def add(self, value):
        self.sum += value


class Ordinary:
    def __init__(self):
        self.sum = 0

    def add(self, value):
        self.sum += value


def attribute_instructions(function):
    """Those that CPython has chosen for the function after it has run a few times."""
    found = dis.get_instructions(function, adaptive=True)
    return {instruction.opname for instruction in found if "_ATTR" in instruction.opname}


async def main():
    counters, ordinary = weft.Array(Counter, 1), Ordinary()
    for _ in range(100):
        await counters[0].add.call(1)
        ordinary.add(1)
    assert attribute_instructions(Counter.add) == attribute_instructions(Ordinary.add)
    print("all checked")


weft.run(main)
