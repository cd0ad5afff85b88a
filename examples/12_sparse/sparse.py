"""A tree that grows where there is most to do: the leaves are the elements of a sparse array.

weft run -n 2 examples/12_sparse/sparse.py
"""

import typing

import weft

DEEPEST = 5


class Interval(typing.NamedTuple):
    level: int
    position: int

    def low(self):
        return self.position / 2**self.level

    def high(self):
        return (self.position + 1) / 2**self.level

    def half(self, which):
        return Interval(self.level + 1, 2 * self.position + which)


class Leaf(weft.Chare):
    index_type = Interval

    def split_if_steep(self):
        here = self.index
        if here.level < DEEPEST and here.high() ** 8 - here.low() ** 8 > 0.1:
            self.proxy.insert(here.half(0))
            self.proxy.insert(here.half(1))
            self.remove_self()  # when this method has returned

    def describe(self):
        return self.index

    def add_up(self, done):
        self.contribute(2.0**-self.index.level, weft.Reducer.sum, done)


async def main():
    leaves = weft.Array(Leaf, (DEEPEST + 1, 2**DEEPEST), sparse=True)
    await leaves.insert(Interval(0, 0))
    num_leaves = 0
    await leaves.done_inserting()
    while len(leaves) != num_leaves:
        num_leaves = len(leaves)
        print(f"leaves: {num_leaves}")
        await leaves.split_if_steep.call()
        await leaves.done_inserting()  # waits for the insertions and removals of all PEs
    for level, position in await leaves.describe.call():
        print(f"level {level}, position {position}")
    length = weft.Future()
    leaves.add_up(length)
    print(f"together they have the length {await length:g}")


weft.run(main)
