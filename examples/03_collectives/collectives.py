"""Rumours spread at random until none is left. No chare can tell when that is, so main waits for quiescence.

Then the chares' counts are reduced, once to main and once to every chare.

weft run -n 2 examples/03_collectives/collectives.py
"""

import random

import weft

NUM_PEOPLE = 40
GENERATIONS = 7


class Person(weft.Chare):
    def __init__(self):
        self.num_heard = 0
        self.random = random.Random(self.index)

    def hear(self, generations_left):
        """Tells two other chares, which do the same, for `generations_left` generations."""
        self.num_heard += 1
        if generations_left > 0:
            for _ in range(2):
                self.proxy[self.random.randrange(NUM_PEOPLE)].hear(generations_left - 1)

    def report(self, total):
        """A reduction whose result goes to a future."""
        self.contribute(self.num_heard, weft.Reducer.sum, total)

    async def heard_most(self):
        """A reduction whose result every chare gets. Returns whether no chare heard more than this one."""
        return self.num_heard == await self.allreduce(self.num_heard, weft.Reducer.max)


async def main():
    people = weft.Array(Person, NUM_PEOPLE)
    people[0].hear(GENERATIONS)
    await weft.quiescence()

    total = weft.Future()
    people.report(total)
    expected = 2 ** (GENERATIONS + 1) - 1
    print(f"a rumour was heard {await total} times, as it should be {expected} times")

    most = await people.heard_most.call()
    print(f"{sum(most)} of {NUM_PEOPLE} heard it most often")


weft.run(main)
