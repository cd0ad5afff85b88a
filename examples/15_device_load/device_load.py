"""Blocks whose work is their device's: load balancing by device time.

    weft run -n 2 --lb-verbose examples/15_device_load/device_load.py

The devices are emulated, so it runs on any machine. On a GPU the body of device_work() launches CuPy kernels.
"""

import time

import weft

KIND = "emulated"
NUM_BLOCKS = 4
NUM_HEAVY = 2  # the first ones, which are on one PE


def relax(field, time_s):
    """A kernel that takes that much processor time."""
    end = time.thread_time() + time_s
    while time.thread_time() < end:
        field[:] += 1


class Block(weft.Chare):
    def __init__(self):
        self.field = weft.DeviceArray(100, float, KIND)

    def iterate(self, over):
        self.over = over
        with self.device_work(kind=KIND):  # what is launched in the body is this block's
            weft.emulated.launch(relax, self.field, 0.01 if self.index < NUM_HEAVY else 0.001)
        self.at_sync()  # no method waits for the kernel

    def resume_from_sync(self):
        self.contribute(1, weft.Reducer.sum, self.over)

    def where_now(self):
        return weft.my_pe()


async def main():
    blocks = weft.Array(Block, NUM_BLOCKS)
    over = weft.Future()
    blocks.iterate(over)
    print(f"{await over} blocks have been balanced")
    pes = await blocks.where_now.call()
    is_apart = weft.num_pes() == 1 or len(set(pes[:NUM_HEAVY])) == NUM_HEAVY
    print(f"the heavy ones are apart: {'yes' if is_apart else 'no'}")


weft.run(main)
