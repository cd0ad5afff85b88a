"""Kernels on emulated devices write into memory of other PEs, and chares and coroutines await their flags."""

import numpy as np

import weft
import weft.emulated
import weft.pgas as pgas

KIND = "emulated"
ROUNDS = 5


def put_signal(inboxes: np.ndarray, flags: np.ndarray, pe: int, value: int, count: int) -> None:
    """A kernel that gets addresses, as one on a GPU does."""
    weft.emulated.memory_at(int(inboxes[pe]), 1, "int64")[0] = value
    weft.emulated.memory_at(int(flags[pe]), (), "uint32")[...] = count


async def rounds(world: pgas.Team) -> None:
    """Each rank sends to the next one, whose coroutine awaits the flag."""
    inbox = pgas.make_segment(1, "int64", KIND)
    flag = pgas.make_segment(1, "uint32", KIND)
    first = 2**32 - 2  # the counter passes 2**32
    await pgas.put(first - 1, flag.pointer())
    inboxes = await pgas.peer_addresses(await world.allgather(inbox.pointer()))
    flags = await pgas.peer_addresses(await world.allgather(flag.pointer()), KIND)
    assert len(inboxes) == len(inboxes.addresses) == world.size
    assert (await inboxes.array.to_host()).tolist() == list(inboxes.addresses)
    await world.barrier()
    stream = weft.Stream(KIND)
    to = (world.rank + 1) % world.size
    for i in range(ROUNDS):
        count = (first + i) % 2**32
        arrived = pgas.wait_for(flag.pointer(), count)
        weft.emulated.launch(
            put_signal, inboxes.array, flags.array, to, 100 * i + world.rank, count, stream=stream
        )
        assert await arrived is None
        assert await pgas.get(inbox.pointer()) == 100 * i + (world.rank - 1) % world.size
        await world.barrier()


class Waiter(weft.Chare):
    def __init__(self) -> None:
        self.flags = pgas.make_segment(3, "uint32", KIND)

    def pointers(self) -> list[pgas.GlobalPointer]:
        return [self.flags.pointer(i) for i in range(3)]

    async def all_raised(self) -> list[int]:
        """Several waits at once, one of which has no need to wait."""
        await weft.gather(*(pgas.wait_for(pointer, i) for i, pointer in enumerate(self.pointers())))
        return (await pgas.get(self.flags.pointer(), 3)).tolist()


def raise_flag(flag: np.ndarray, value: int) -> None:
    flag[...] = value


def raise_at(flags: np.ndarray, pe: int, value: int) -> None:
    weft.emulated.memory_at(int(flags[pe]), (), "uint32")[...] = value


async def chares(world: pgas.Team) -> None:
    if world.rank == 0:
        waiter = weft.Singleton(Waiter, pe=world.size - 1)
        pointers = await waiter.pointers.call()
        await pgas.put(np.zeros(3, "uint32"), pointers[0])
        result = waiter.all_raised.call()
        for i in (2, 1):
            assert not result.done()
            await pointers[i].learn()
            await weft.emulated.launch(raise_flag, pointers[i].mapped(), i + 5)
        assert await result == [0, 6, 7]
    await world.barrier()


async def words_in_host_memory(world: pgas.Team) -> None:
    flag = pgas.make_segment(1, "uint32")
    theirs = (await world.allgather(flag.pointer()))[(world.rank + 1) % world.size]
    wait = pgas.wait_for(at=flag.pointer(), value=1)
    assert not wait.done()
    await world.barrier()
    await pgas.put(1, theirs)
    await wait
    assert pgas.wait_for(flag.pointer(), 1).done()
    await world.barrier()


async def refused(words: tuple[str, ...], call, *arguments) -> None:
    try:
        result = call(*arguments)
        if hasattr(result, "__await__"):
            await result
    except (weft.Error, TypeError) as error:
        assert all(word in str(error) for word in words), (words, str(error))
        return
    raise AssertionError(f"not refused: {call.__name__}{arguments}")


async def misuse(world: pgas.Team) -> None:
    own = pgas.make_segment(2, "uint32", KIND)
    host = pgas.make_segment(1, "uint32")
    theirs = (await world.allgather(own.pointer()))[(world.rank + 1) % world.size]
    for value in (-1, 2**32, 1.5, "1"):
        await refused(("weft.pgas.wait_for", "uint32"), pgas.wait_for, own.pointer(), value)
    await refused(("it works on uint32",), pgas.wait_for, own.pointer().cast("int32"), 1)
    await refused(("weft.pgas.wait_for",), pgas.wait_for, own.local, 1)
    await refused(("does not have 4 bytes behind it",), pgas.wait_for, own.pointer() + 2, 1)
    await refused(("a multiple of 4",), pgas.wait_for, (own.pointer().cast("u1") + 1).cast("u4"), 1)
    if world.size > 1:
        await refused(("keep the word in a segment of the PE that waits",), pgas.wait_for, theirs, 1)
        assert len(await pgas.peer_addresses([None, theirs])) == 2  # it learns the segment
    addresses = await pgas.peer_addresses([None, own.pointer(1)])
    assert addresses.addresses == (0, own.local.ptr + 4), addresses
    assert repr(addresses) == "<weft.pgas.PeerAddresses: 2 for kernels of emulated:0>" or world.rank
    await refused(("no pointer", "`kind`"), pgas.peer_addresses, [None])
    assert len(await pgas.peer_addresses([], KIND)) == 0
    await refused(("reach device memory alone",), pgas.peer_addresses, [host.pointer()], KIND)
    await refused(("no pointer into device memory",), pgas.peer_addresses, [host.pointer()])
    await refused(("no such device",), pgas.peer_addresses, [host.pointer()], "host")
    other = f"{KIND}:{1 - own.local.device}"
    words = (f"kernels of {other}", f"this PE reaches it on {own.kind}", "byte 0 of segment")
    await refused(words, pgas.peer_addresses, [own.pointer()], other)
    await refused(("does not have 4 bytes",), pgas.peer_addresses, [own.pointer() + 2])
    await refused(("is for kernels",), weft.emulated.memory_at, own.local.ptr, 1, "uint32")
    nowhere = weft.DeviceArray(1, "int64", KIND)
    await nowhere.copy_from(np.array([64]))
    words = ("not inside one emulated allocation",)
    await refused(words, weft.emulated.launch, put_signal, nowhere, nowhere, 0, 0, 0)
    await world.barrier()


async def freed(world: pgas.Team) -> None:
    """The addresses keep the memory, and a wait keeps its word."""
    flag = pgas.make_segment(1, "uint32", KIND)
    await pgas.put(0, flag.pointer())
    addresses = await pgas.peer_addresses(await world.allgather(flag.pointer()))
    wait = pgas.wait_for(flag.pointer(), 1)
    await world.barrier()
    released = flag.release()
    await world.barrier()
    to = (world.rank + 1) % world.size
    await weft.emulated.launch(raise_at, addresses.array, to, 1)
    await wait
    assert not released.done()
    await world.barrier()
    del addresses
    await released


async def main(world: pgas.Team) -> None:
    await rounds(world)
    await chares(world)
    await words_in_host_memory(world)
    await misuse(world)
    await freed(world)
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
