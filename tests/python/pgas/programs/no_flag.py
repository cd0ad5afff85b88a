"""PE 1 waits for a flag, in memory of kind `argv[1]`, that nothing raises. The job ends."""

import sys

import weft
import weft.pgas as pgas

KIND = sys.argv[1]
kept = []  # the segment
waits = []


async def wait_in_vain(pointer: pgas.GlobalPointer) -> None:
    await pgas.wait_for(pointer, 9)
    raise AssertionError("the flag is not raised")


async def main(world: pgas.Team) -> None:
    if world.rank == 1:
        flag = pgas.make_segment(2, "uint32", KIND)
        kept.append(flag)
        for i in range(2):
            await pgas.put(i, flag.pointer(i))
        await pgas.wait_for(flag.pointer(1), 1)
        waits.append(pgas.wait_for(flag.pointer(0), 1))
        world.rpc_ff(1, wait_in_vain, flag.pointer(1))


weft.pgas.run(main)
for wait in waits:
    try:
        wait.result()
    except weft.Error as error:
        assert error.code == "closed" and "the job ended before the word had reached 1" in str(error), error
        print("all checked")
