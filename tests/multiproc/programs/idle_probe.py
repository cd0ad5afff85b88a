"""A job that does nothing for a second; prints the processor time that all its PEs spent in it."""

import os
import time

# NumPy's OpenBLAS starts a thread that spins for some 50 ms before it sleeps: not the idling meant here.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import weft

IDLE_S = 1.0


class Watch(weft.Chare):
    def start(self):
        self.spent_s = time.process_time()

    def stop(self):
        return time.process_time() - self.spent_s


async def main():
    watches = weft.Group(Watch)
    await watches.start.call()
    await weft.sleep(IDLE_S)
    print(sum(await watches.stop.call()) / IDLE_S)


weft.run(main)
