"""Kernels on GPUs reach words in host memory of all PEs of the host. Here the CPU stores, in their place."""

import ctypes

import weft
import weft.pgas as pgas

until_the_end = []  # addresses that outlive the job


async def main(world: pgas.Team) -> None:
    words = [pgas.make_segment(count, "uint32") for count in (2, 2, 100_000)]  # two of them share pages
    to = (world.rank + 1) % world.size
    for segment in words:
        theirs = (await world.allgather(segment.pointer(1)))[to]
        addresses = await pgas.peer_addresses([segment.pointer(), theirs], "cuda")
        assert addresses.addresses[0] == segment.local.ctypes.data
        wait = pgas.wait_for(segment.pointer(1), 3)
        assert not wait.done()
        await world.barrier()
        ctypes.c_uint32.from_address(addresses.addresses[1]).value = 3
        await wait
        await world.barrier()
        del addresses  # unlocks the pages
        await pgas.peer_addresses([theirs, theirs], "cuda")
        await world.barrier()  # the memory stays until all PEs are here
    kept = [await pgas.peer_addresses([segment.pointer()], "cuda") for segment in words]
    released = words[2].release()
    await world.barrier()
    assert not released.done()
    del kept
    await released
    own = pgas.make_segment_at(bytearray(64))
    try:
        await pgas.peer_addresses([own.pointer()], "cuda")
    except weft.Error as error:
        assert "allocate it page-locked" in str(error), error
    else:
        raise AssertionError("kernels use memory that is not page-locked")
    until_the_end.append(await pgas.peer_addresses([words[0].pointer()], "cuda"))
    await world.barrier()
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
