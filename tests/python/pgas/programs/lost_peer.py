"""What PE 1 has queued on a stream, or awaits, needs PE 0, which dies. The job ends.

lost_peer.py wait|gather|reduce|flag
"""

import os
import signal
import sys

import weft
import weft.pgas as pgas

KIND = "emulated"


async def main(world: pgas.Team) -> None:
    what = sys.argv[1]
    stream = weft.Stream(KIND)
    array = weft.DeviceArray(4, "float32", KIND)
    all_arrays = weft.DeviceArray(8, "float32", KIND)
    flag = pgas.make_segment(1, "uint32", KIND)
    group = await world.device_group(KIND)
    if world.rank == 0:
        await world.barrier()
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "wait":
        pgas.wait_on_stream(flag.pointer(), 1, stream)
    elif what == "gather":
        group.all_gather(array, all_arrays, stream=stream)
    elif what == "reduce":
        group.all_reduce(array, stream=stream)
    await world.barrier()  # it is queued
    await (pgas.wait_for(flag.pointer(), 1) if what == "flag" else weft.stream_done(stream))
    print("it has got what nobody sent")


pgas.run(main)
