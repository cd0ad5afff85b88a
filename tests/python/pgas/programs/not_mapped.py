"""Without a mapping, kernels reach the memory of their own PE alone."""

import weft
import weft.pgas as pgas


async def main(world: pgas.Team) -> None:
    flag = pgas.make_segment(1, "uint32", "emulated")
    pointers = await world.allgather(flag.pointer())
    assert len(await pgas.peer_addresses([flag.pointer()])) == 1
    try:
        await pgas.peer_addresses(pointers)
    except weft.Error as error:
        assert f"of PE {1 - world.rank} (emulated): the device does not reach the segment" in str(error), (
            error
        )
    else:
        raise AssertionError("addresses of memory that is not mapped")
    await world.barrier()
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
