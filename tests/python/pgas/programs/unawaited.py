"""A put past the end whose operation is dropped."""

import weft
import weft.pgas as pgas


async def main(world: pgas.Team) -> None:
    own = pgas.make_segment(100)
    pointers = await world.allgather(own.pointer())
    if world.rank == 0:
        pgas.put(1.0, pointers[1] + 100)
    await weft.Future()  # the job ends before


weft.pgas.run(main)
