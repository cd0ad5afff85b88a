"""Segments in GPU memory, and arrays of CuPy or PyTorch (`argv[2]`) without a copy."""

import importlib
import sys

import numpy as np

import weft
import weft.pgas as pgas

KIND, LIBRARY = sys.argv[1:3]


async def main(world: pgas.Team) -> None:
    library = importlib.import_module(LIBRARY)
    segment = pgas.make_segment(6, "f8", KIND)
    pointers = await world.allgather(segment.pointer())
    own = library.from_dlpack(segment.local)
    own[:] = world.rank + 1
    await weft.stream_done(1, KIND)
    await world.barrier()
    other = pointers[(world.rank + 1) % world.size]
    theirs = (world.rank + 1) % world.size + 1
    assert ((await pgas.get(other, 6)) == theirs).all()
    array = library.zeros(
        6, dtype=library.float64, **({"device": str(weft.device())} if LIBRARY == "torch" else {})
    )
    assert await pgas.copy(other, array) is array
    assert float(array.sum()) == 6 * theirs
    await world.barrier()
    await pgas.put(array[:3], segment.pointer() + 3)
    assert (await pgas.get(segment.pointer(), 6)).tolist() == [world.rank + 1] * 3 + [theirs] * 3
    await other.learn()
    mapped = other.mapped(6)
    if mapped is not None:
        assert np.isfinite(float(library.from_dlpack(mapped).sum()))
    await world.barrier()
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
