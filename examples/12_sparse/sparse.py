"""A tree that grows where there is most to do: the leaves are the elements of a sparse array.

weft run -n 2 examples/12_sparse/sparse.py
"""

import weft

DEEPEST = 5


class Leaf(weft.Chare):
    """Stands for an interval: the index is (level, position)."""

    def split_if_steep(self):
        level, position = self.index
        low = position / 2**level
        high = (position + 1) / 2**level
        if level < DEEPEST and high**8 - low**8 > 0.1:
            self.proxy.insert((level + 1, 2 * position))
            self.proxy.insert((level + 1, 2 * position + 1))
            self.remove_self()  # when this method has returned

    def describe(self):
        return self.index

    def add_up(self, done):
        level, _ = self.index
        self.contribute(2.0**-level, weft.Reducer.sum, done)


async def main():
    leaves = weft.Array(Leaf, (DEEPEST + 1, 2**DEEPEST), sparse=True)
    await leaves.insert((0, 0))
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
