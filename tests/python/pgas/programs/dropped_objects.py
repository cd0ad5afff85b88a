"""weft.pgas.DistObject whose last reference is dropped on another thread, or by a garbage collection."""

import gc
import threading
import weakref

import weft
import weft.pgas as pgas

held = []
wanted = threading.Event()
dropped = threading.Event()


def drop_when_wanted() -> None:
    while True:
        wanted.wait()
        wanted.clear()
        held.clear()
        dropped.set()


def let_it_be_dropped() -> None:
    """Lets go of the GIL in a handler; messages wait behind this one, in the same turn."""
    wanted.set()
    dropped.wait()
    dropped.clear()


def use(found: pgas.DistObject) -> object:
    return found.value


async def expect_destroyed(future: weft.Future) -> None:
    try:
        value = await future
    except weft.Error as error:
        assert "has been destroyed" in str(error), error
        return
    raise AssertionError(f"an object that was dropped has a value: {value}")


async def on_another_thread(world: pgas.Team) -> None:
    threading.Thread(target=drop_when_wanted, daemon=True).start()
    for number in range(10):
        held.append(pgas.DistObject(world, [number] * 100))
        world.rpc_ff(world.rank, let_it_be_dropped)
        futures = [held[0].fetch(world.rank) for _ in range(3)]
        futures += [world.rpc(world.rank, use, held[0]) for _ in range(3)]
        for future in futures:
            await expect_destroyed(future)


class Owner:
    def __init__(self, world: pgas.Team) -> None:
        self.name = pgas.DistObject(world, self)


async def in_a_cycle(world: pgas.Team) -> None:
    owners = [Owner(world) for _ in range(5)]
    references = [weakref.ref(owner) for owner in owners]
    await world.barrier()
    owners.clear()
    gc.collect()
    assert not any(reference() for reference in references), "a cycle through a DistObject is kept"
    # The names of the other ranks are still in step.
    name = pgas.DistObject(world, world.rank)
    other = (world.rank + 1) % world.size
    assert await name.fetch(other) == other
    await world.barrier()


async def main(world: pgas.Team) -> None:
    await on_another_thread(world)
    await in_a_cycle(world)
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
