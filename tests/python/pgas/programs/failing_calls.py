"""A put of several parts whose call fails while parts are in flight: their memory stays.

The call fails where Python has no memory, at each of its allocations in turn.
"""

import _testcapi
import gc
import weakref

import numpy as np

import weft
import weft.emulated
import weft.pgas as pgas

MOST_ALLOCATIONS = 300
COUNT = 8


class Watched(np.ndarray):
    """An array that can be watched."""


async def main(world: pgas.Team) -> None:
    array = await pgas.make_array(COUNT * world.size, "i8", kind="emulated")
    await world.barrier()
    if world.rank == 0:
        await fail_each_allocation(array)
    await world.barrier()
    if world.rank == 0:
        print("all checked")


async def fail_each_allocation(array: pgas.GlobalArray) -> None:
    weft.emulated.set_faults(polls_per_copy=50)
    num_in_flight = 0
    for number in range(1, MOST_ALLOCATIONS):
        source = Watched(array.shape, "i8")
        source[:] = number
        reference = weakref.ref(source)
        has_failed = False
        operation = None
        _testcapi.set_nomemory(number, number + 1)
        try:
            operation = array.put(slice(None), source)
        except Exception:  # a MemoryError, or what NumPy makes of it
            has_failed = True
        finally:
            _testcapi.remove_mem_hooks()
        del source
        gc.collect()
        is_alive = reference() is not None
        if not has_failed:
            await operation
            continue
        for _ in range(300):
            await weft.yield_now()
        if number in await array.get():  # a part had started
            num_in_flight += 1
            assert is_alive, f"the array of a part in flight was dropped, at allocation {number}"
            assert reference() is None, "the array is kept after its parts are over"
    assert num_in_flight > 0, "no call failed while a part was in flight"


weft.pgas.run(main)
