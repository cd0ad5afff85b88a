"""Types of the program's own as arguments and results, a reduction by a function of its own, and an exception
that reaches its caller.

weft run -n 2 examples/05_values/values.py
"""

from dataclasses import dataclass

import weft

NUM_CELLS = 4


@dataclass
class Particle:
    name: str
    position: tuple[float, float]


def merge(a, b):
    """The range that contains two ranges."""
    return min(a[0], b[0]), max(a[1], b[1])


class Cell(weft.Chare):
    def __init__(self):
        self._particles = []

    def add(self, particle):
        """The argument is this call's own value."""
        self._particles.append(particle)

    def find(self, name):
        for each in self._particles:
            if each.name == name:
                return each
        raise LookupError(f"no particle is called {name}")

    async def range(self):
        """The range of the first coordinates over all cells."""
        x = self._particles[0].position[0]
        return await self.allreduce((x, x), weft.Reducer.custom(merge))


async def main():
    cells = weft.Array(Cell, NUM_CELLS)
    for i in range(NUM_CELLS):
        await cells[i].add.call(Particle(f"p{i}", (1.0 * i, 0.5 * i)))

    found = await cells[3].find.call("p3")
    print(f"{found.name} is at {found.position[0]:g}, {found.position[1]:g}")

    low, high = (await cells.range.call())[0]
    print(f"the particles lie between {low:g} and {high:g}")

    try:
        await cells[3].find.call("p0")
    except weft.RemoteError as error:
        print(f"the call failed: {error.message}")


weft.run(main)
