"""Rows and columns of a grid: sections with calls and reductions of their own, also of several collections.

weft run -n 2 examples/13_sections/sections.py
"""

import weft

SIZE = 4


class Cell(weft.Chare):
    def __init__(self):
        row, column = self.index
        self.value = SIZE * row + column

    def scale(self, factor):
        self.value *= factor

    def get(self):
        return self.value

    def add_up(self, section, done):
        self.contribute(self.value, weft.Reducer.sum, done, section=section)


async def main():
    grid = weft.Array(Cell, (SIZE, SIZE))
    await grid[1, :].scale.call(10)
    print("row 1:", *await grid[1, :].get.call())
    print("column 3 from below:", *await grid[::-1, 3].get.call())
    diagonal = grid.section(lambda index: index[0] == index[1])
    print("diagonal:", *await diagonal.get.call())

    rows = [grid[i, :] for i in range(SIZE)]
    sums = [weft.Future() for _ in rows]
    for row, done in zip(rows, sums, strict=True):
        row.add_up(row, done)
    print("sums of the rows:", *await weft.gather(*sums))

    for half in diagonal.split(2):
        done = weft.Future()
        half.add_up(half, done)
        print("sum of a half of the diagonal:", await done)

    border = weft.Array(Cell, (1, SIZE))
    both = weft.combine(diagonal, border)
    done = weft.Future()
    both.add_up(both, done)
    print("sum of the diagonal and the border:", await done)


weft.run(main)
