"""Operations of several pieces that the end of the job cuts off. They fail, or their data is there."""

import numpy as np

import weft
import weft.pgas as pgas

started = []


async def main(world: pgas.Team) -> None:
    array = await pgas.make_array((4, 40000))
    await array.put(slice(2 * world.rank, 2 * world.rank + 2), 1)
    started.append((array, None))  # its memory stays
    await world.barrier()
    if world.rank == 0:
        for _ in range(10):
            out = np.zeros((4, 20000))
            started.append((array.get((slice(None), slice(None, None, 2)), out=out), out))
        weft.exit(0)
    await weft.Future()


weft.pgas.run(main)
num_cut_off = 0
for operation, out in started[1:]:
    try:
        operation.result()
    except weft.Error as error:
        assert error.code == "closed" and "the job has ended" in str(error), error
        num_cut_off += 1
        continue
    assert (out == 1).all(), "an operation without its data counts as a success"
if len(started) > 1:
    assert num_cut_off > 0, "all were over before the job ended, so nothing was tested"
    print("all checked")
