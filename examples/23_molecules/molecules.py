"""Molecular dynamics as in Charm++'s LeanMD: cells have the particles, pairs of neighbours compute forces.

weft run -n 2 examples/23_molecules/molecules.py

A cell sends its positions to the section of its pairs. The pairs add up forces by a reduction over that
section, whose target is the cell. Here the cells form a ring, and particles stay in theirs.
"""

import numpy as np

import weft

NUM_CELLS = 6  # each of length 1, also the range of forces
PARTICLES_OF_CELL = 4
NUM_STEPS = 20
STEP_LENGTH = 0.01


def pairs_of(pairs, cell):
    """The pairs of a cell. Equal sections are the same wherever they are made."""
    return pairs.section([((cell - 1) % NUM_CELLS, cell), (cell, cell), (cell, (cell + 1) % NUM_CELLS)])


def forces_between(mine, others):
    """The forces on `mine`: the nearer two particles are, the stronger they repel each other."""
    distances = mine[:, np.newaxis] - others
    distances -= NUM_CELLS * np.round(distances / NUM_CELLS)
    return (np.sign(distances) * np.clip(1 - np.abs(distances), 0, None)).sum(axis=1)


class Cell(weft.Chare):
    def __init__(self, pairs):
        self.pairs = pairs_of(pairs, self.index)
        i = np.arange(PARTICLES_OF_CELL)
        disturbed = 0.05 * np.sin(7 * self.index + 3 * i)
        self.positions = self.index + (i + 0.5) / PARTICLES_OF_CELL + disturbed
        self.speeds = np.zeros(PARTICLES_OF_CELL)
        self.num_steps = 0

    def run(self, done):
        self.done = done
        self.pairs.take(self.index, self.positions)

    def move(self, forces):
        self.speeds += forces * STEP_LENGTH
        self.positions += self.speeds * STEP_LENGTH
        self.num_steps += 1
        if self.num_steps < NUM_STEPS:
            self.pairs.take(self.index, self.positions)
        else:
            sums = np.array([self.speeds.sum(), (self.speeds**2).sum() / 2])
            self.contribute(sums, weft.Reducer.sum, self.done)


class Pair(weft.Chare):
    """Of the cells that its index names, which may be one."""

    def __init__(self, cells):
        self.cells = cells
        self.arrived = {}

    def take(self, cell, positions):
        self.arrived[cell] = positions
        a, b = self.index
        if len(self.arrived) < (1 if a == b else 2):
            return
        arrived, self.arrived = self.arrived, {}
        for here, other in {(a, b), (b, a)}:
            forces = forces_between(arrived[here], arrived[other])
            section = pairs_of(self.proxy, here)
            self.contribute(forces, weft.Reducer.sum, self.cells[here].move, section=section)


async def main():
    pairs = weft.Array(Pair, (NUM_CELLS, NUM_CELLS), sparse=True)
    cells = weft.Array(Cell, NUM_CELLS, args=(pairs,))
    for cell in range(NUM_CELLS):
        for other in (cell, (cell + 1) % NUM_CELLS):
            await pairs.insert((cell, other), cells)
    await pairs.done_inserting()
    done = weft.Future()
    cells.run(done)
    momentum, energy = await done
    print(f"after {NUM_STEPS} steps: momentum {abs(momentum):.4f}, kinetic energy {energy:.4f}")


weft.run(main)
