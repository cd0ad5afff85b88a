"""main raises: weft.run raises the same object on the PE of main. argv[1] says what the program does."""

import sys
import time
import traceback

import weft
import weft.pgas

MODE = sys.argv[1]
raised = ValueError("boom")


class Busy(weft.Chare):
    def compute(self, began):
        began.set()
        weft.progress()  # sends it
        while True:
            time.sleep(0.01)


async def main():
    if MODE == "busy":
        began = weft.Future()
        weft.Singleton(Busy, 1).compute(began)
        await began
    raise raised


async def ranks(world):
    await world.barrier()
    if world.rank == world.size - 1:
        raise raised
    await weft.Future()


def plain():
    raise raised


MAINS = {"plain": plain, "ranks": ranks}

try:
    if MODE == "ranks":
        weft.pgas.run(ranks)
    else:
        weft.run(MAINS.get(MODE, main))
except SystemExit as end:
    print(f"SystemExit {end.code}", flush=True)
    raise
except ValueError as error:
    assert error is raised and error.__cause__ is None and error.__context__ is None
    assert traceback.extract_tb(error.__traceback__)[-1].line == "raise raised"
    print("caught", flush=True)
    if MODE != "caught":
        raise
