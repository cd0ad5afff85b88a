"""With WEFT_PGAS_MAPPING=off no device reaches the memory of a peer, and all ranks hear of it."""

import weft
import weft.pgas as pgas


async def main(world):
    try:
        await world.device_group("emulated")
    except weft.Error as error:
        assert error.code == "unsupported", error.code
        assert "rank 0 (PE 0): emulated:" in str(error), error
        assert "does not reach the memory of rank 1 (PE 1)" in str(error), error
    else:
        raise AssertionError("not refused")
    await world.barrier()
    if world.rank == 0:
        print("all checked")


pgas.run(main)
