"""PE 0 calls PE 1 every millisecond; with "compute", PE 1 computes instead. Ends when the file exists.

With "balance" there is a step of load balancing before; with "attached" it starts two PEs itself.
"""

import sys
import time
from pathlib import Path

import weft

STOP = Path(sys.argv[1])


class Cell(weft.Chare):
    def take(self, values: list[int]) -> int:
        return len(values)

    def compute(self) -> None:
        print("ready", flush=True)
        while not STOP.exists():
            time.sleep(0.01)  # with the PE in its hands, as a computation has it


class Block(weft.Chare):
    def work(self, done: weft.Future) -> None:
        self.done = done
        time.sleep(0.01)
        self.at_sync()

    def resume_from_sync(self) -> None:
        self.contribute(1, weft.Reducer.sum, self.done)


async def main() -> None:
    cells = weft.Group(Cell)
    if sys.argv[2:] == ["balance"]:
        done = weft.Future()
        weft.Array(Block, 4).work(done)
        await done
    last = cells[weft.num_pes() - 1]
    if sys.argv[2:] == ["compute"]:
        await last.compute.call()
        return
    for step in range(10**6):
        await last.take.call(list(range(100)))
        if step == 100:
            print("ready", flush=True)
        if STOP.exists():
            break
        await weft.sleep(0.001)


if sys.argv[2:] == ["attached"]:
    weft.run(main, pes=2)
else:
    weft.run(main)
