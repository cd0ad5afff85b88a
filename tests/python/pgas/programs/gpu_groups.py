"""Collectives of CuPy arrays, queued on a stream and in a graph that is launched again and again."""

import cupy
import numpy as np
from group_reference import OPERATIONS, WITH_PARTS, expected, input_of

import weft
import weft.pgas as pgas

TYPES = ("int32", "int64", "float16", "float32", "float64")
LAUNCHES = 7


async def all_operations(world, group, stream) -> None:
    """In pieces, too: the sizes are those around a place and around what one step does."""
    place = 1 << 20
    for name in TYPES:
        item = np.dtype(name).itemsize
        for elements in (1, 7, (256 << 10) // item, (256 << 10) // item + 1, 3 * place // item + 5):
            for operation in OPERATIONS:
                count = elements * (world.size if operation in WITH_PARTS else 1)
                inputs = [input_of(elements, rank, count, name) for rank in range(world.size)]
                result = expected(operation, inputs, name, "sum", 0, world.rank)
                with stream:
                    array = cupy.asarray(inputs[world.rank])
                    out = cupy.zeros(count if result is None else result.size, name)
                    if operation == "broadcast":
                        group.broadcast(array)
                        out = array
                    else:
                        getattr(group, operation)(array, out)
                    doubled = out + out  # a kernel behind it
                await group.over()
                stream.synchronize()
                if result is not None:
                    found = cupy.asnumpy(out)
                    assert np.array_equal(found, result), (name, elements, operation)
                    assert np.array_equal(cupy.asnumpy(doubled), result + result)


async def replayed(world, group, stream) -> None:
    """Each launch adds the ranks of all: small and large data, and operations of all lanes."""
    factor = world.size
    for elements in (1000, 1 << 20):
        with stream:
            array = cupy.zeros(elements, "float64")
            total = cupy.zeros(elements, "float64")
            gathered = cupy.zeros(elements * world.size, "float64")
            array += 0  # what is captured has run before, so that its kernels are loaded
            group.all_reduce(gathered, op=weft.Reducer.max)
        await group.over()
        stream.synchronize()
        with stream:
            stream.begin_capture()
            array += world.rank + 1
            group.all_reduce(array, total)
            group.all_gather(total, gathered)
            group.all_reduce(gathered, op=weft.Reducer.max)
            graph = stream.end_capture()
        for launch in range(1, LAUNCHES + 1):
            graph.launch(stream)
            stream.synchronize()
            each = launch * factor * (factor + 1) // 2
            assert (cupy.asnumpy(total) == each).all(), (elements, launch)
            assert (cupy.asnumpy(gathered) == each).all(), (elements, launch)
            # Operations outside of the graph go on from its counts.
            with stream:
                group.broadcast(total)
            await group.over()
        await world.barrier()


async def main(world):
    group = await world.device_group("cuda", place_bytes=1 << 20)
    stream = cupy.cuda.Stream(non_blocking=True)
    await all_operations(world, group, stream)
    await replayed(world, group, stream)
    await group.close()
    if world.rank == 0:
        print("all checked")


pgas.run(main)
