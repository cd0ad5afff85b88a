"""On 6 PEs in a grid. PE 3, through which PE 0 calls PEs 4 and 5, computes until a file exists.

The coroutine that makes the calls waits meanwhile, and another one makes the file."""

import pathlib
import sys

import weft

CALLS = 40_000
ARGUMENT = bytes(990)
made = 0


class Note(weft.Chare):
    def __init__(self):
        weft._core._aggregate_through_grid()
        self.count = 0

    def compute_until(self, path):
        while not path.exists():
            pass

    def note(self, argument):
        self.count += 1

    async def call(self, notes):
        global made
        note = notes.aggregated().note
        for _ in range(CALLS):
            await note(4, ARGUMENT)
            await note(5, ARGUMENT)
            made += 1

    def counted(self):
        return self.count


async def main():
    path = pathlib.Path(sys.argv[1])
    notes = weft.Group(Note)
    await notes.created()
    notes[3].compute_until(path)
    notes[0].call(notes)
    before, turns = 0, 0
    while turns < 1000:  # no call is made any more
        await weft.yield_now()
        turns = turns + 1 if made == before > 0 else 0
        before = made
    assert made < CALLS, made
    path.touch()
    await weft.quiescence()
    assert await notes.counted.call() == [0, 0, 0, 0, CALLS, CALLS]
    print("all checked")


weft.run(main)
