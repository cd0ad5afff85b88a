"""Global memory: a histogram whose bins lie on all PEs, counted by atomic operations, and copied to a device.

weft run -n 2 examples/16_global_memory/global_memory.py
"""

import weft
import weft.pgas

BINS_PER_PE = 4
SAMPLES = 1000


async def main(world: weft.pgas.Team) -> None:
    # Each PE has a part of the bins.
    bins = await weft.pgas.make_array(world.size * BINS_PER_PE, "uint64")
    await world.barrier()
    for i in range(world.rank, SAMPLES, world.size):
        sample = 1664525 * (i + 1013904223) % 2**32
        # On one host this is an atomic instruction: the bin's PE takes no part in it.
        await bins.fetch_add((sample >> 16) % len(bins), 1)
    await world.barrier()

    if world.rank == 0:
        # The bins of all PEs, into one segment of device memory and from there to this PE.
        gathered = weft.pgas.make_segment(len(bins), "uint64", kind="emulated")
        await weft.pgas.copy(bins, gathered.pointer())
        counts = await weft.pgas.get(gathered.pointer(), len(bins))
        print(f"{counts.sum()} samples in {len(bins)} bins")

        # A pointer past the end is an error, and nothing is written.
        try:
            await weft.pgas.put(1, bins.pointer(0) + BINS_PER_PE)
        except weft.Error as error:
            print(f"refused: {error}")
    await world.barrier()  # the bins stay until all PEs are here


weft.pgas.run(main)
