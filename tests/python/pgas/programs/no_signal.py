"""The stream of PE 1 waits for a signal that no PE sends. The job ends."""

import weft
import weft.pgas as pgas

waits = []


async def main(world: pgas.Team) -> None:
    if world.rank == 1:
        flag = pgas.make_segment(1, "uint32", "emulated")
        waits.append(pgas.wait_on_stream(flag.pointer(), 1, weft.Stream("emulated")))


weft.pgas.run(main)
for wait in waits:
    try:
        wait.result()
    except weft.Error as error:
        assert error.code == "closed" and "the job has ended" in str(error), error
        print("all checked")
