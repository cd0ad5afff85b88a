"""Teams, calls, distributed objects and collectives of weft.pgas; `argv[1]` names what ends badly."""

from __future__ import annotations

import gc
import math
import sys
import threading

import numpy as np

import weft
import weft.emulated
import weft.pgas
from weft.pgas import DistObject, Team

MODE = sys.argv[1] if len(sys.argv) > 1 else "all"


def expect(holds: bool, what: object = "") -> None:
    if not holds:
        raise AssertionError(what)


def join(*parts: str, by: str = " ") -> str:
    return by.join(parts)


def fail(value: int) -> None:
    raise LookupError(f"the value is {value}")


async def fail_late(value: int) -> None:
    await weft.yield_now()
    fail(value)


async def ring(hops: int) -> int:
    world = weft.pgas.world()
    if hops == 0:
        return world.rank
    return await world.rpc((world.rank + 1) % world.size, ring, hops - 1)


def append(items: DistObject, *values: object) -> int:
    items.value.extend(values)
    return len(items.value)


def append_to(first: DistObject, array: np.ndarray, *, second: DistObject) -> float:
    first.value.append(1)
    second.value.append(2)
    return float(array.sum())


def inside(holder: list[DistObject]) -> int:
    return len(holder[0].value)


def size_of(team: Team | None) -> int:
    return 0 if team is None else team.size


def return_lock() -> object:
    return threading.Lock()


def longer(a: str, b: str) -> str:
    return max(a, b, key=lambda text: (len(text), text))


def kind_of(array: weft.DeviceArray) -> str:
    return f"{array.kind.partition(':')[0]} {array.shape}"


async def error_of(awaitable: object) -> str:
    try:
        await awaitable
    except weft.Error as error:
        return str(error)
    return "nothing"


async def calls(world: Team) -> None:
    next_rank = (world.rank + 1) % world.size
    expect(await world.rpc(next_rank, join, "a", "b", by="+") == "a+b")
    expect(await world.rpc(next_rank, ring, 5) == (next_rank + 5) % world.size)
    numbers = np.arange(200_000, dtype=np.float64)
    total = world.rpc(next_rank, np.sum, numbers)
    numbers[:] = 0  # the call has its own
    expect(await total == 199_999 * 100_000)
    echoed = await world.rpc(next_rank, np.flip, np.arange(50_000))
    expect(echoed[0] == 49_999)
    for function in (fail, fail_late):
        try:
            await world.rpc(next_rank, function, 3)
            raise AssertionError("no error")
        except weft.RemoteError as error:
            expect(error.type_name == "LookupError", error.type_name)
            expect(error.message == "the value is 3", error.message)
            expect(
                f"a function that rank {next_rank} of a team of {world.size} ran on PE {next_rank}"
                in error.traceback_text
            )
    expect("cannot be sent" in await error_of(world.rpc(next_rank, return_lock)))
    for wrong in (
        lambda: world.rpc(world.size, join),
        lambda: world.rpc(-1, join),
        lambda: world.rpc(0, lambda: 1),
        lambda: world.rpc(0, "join"),
    ):
        try:
            wrong()
            raise AssertionError("no error")
        except weft.Error:
            pass
    try:
        world.rpc(0)
        raise AssertionError("no error")
    except TypeError:
        pass


async def objects(world: Team) -> None:
    next_rank = (world.rank + 1) % world.size
    items = DistObject(world, [])
    expect(await world.rpc(next_rank, append, items, world.rank, "x") == 2)
    await world.barrier()
    expect(items.value == [(world.rank - 1) % world.size, "x"], items.value)
    expect(await items.fetch(next_rank) == [world.rank, "x"])
    expect(items.team == world)
    await world.barrier()
    # One rank is late: what needs its object waits, also with an array beside the message.
    if world.rank == world.size - 1:
        for _ in range(30):
            await weft.yield_now()
    first = DistObject(world, [])
    second = DistObject(world, [])
    big = np.full(100_000, 2.0)
    expect(await world.rpc(next_rank, append_to, first, big, second=second) == 200_000)
    expect(await second.fetch(next_rank) == [2])
    await world.barrier()
    expect(first.value == [1] and second.value == [2])
    first.value = [5]
    expect(await world.rpc(world.rank, inside, [first]) == 1)
    await world.barrier()
    expect(await first.fetch(next_rank) == [5])
    await world.barrier()
    if world.rank == 0:
        del first
        gc.collect()
    await world.barrier()
    if world.rank != 0:
        expect("has been destroyed" in await error_of(first.fetch(0)))
    await world.barrier()


async def teams(world: Team) -> None:
    team = await world.split(world.rank % 2, key=-world.rank)
    expect(team.members() == sorted(team.members(), reverse=True))
    expect(team.members()[team.rank] == weft.my_pe())
    expect(await world.split(None) is None)
    await world.barrier()
    expect(await team.rpc((team.rank + 1) % team.size, size_of, team) == team.size)
    expect(await world.rpc(world.rank, size_of, None) == 0)
    expect(team != world and weft.pgas.world() == world and hash(world) == hash(weft.pgas.world()))
    expect(repr(world) == f"<weft.pgas.Team, rank {world.rank} of {world.size}>")
    if world.size > 1:
        other = 1 - world.rank % 2
        expect("no member" in await error_of(world.rpc(other, size_of, team)))
    await world.barrier()


async def values(world: Team) -> None:
    size, rank = world.size, world.rank
    for root in range(size):
        expect(await world.broadcast({"from": rank}, root) == {"from": root})
        expect(await world.broadcast(root=root) is None)
        merged = await world.reduce(rank + 1, weft.Reducer.product, root)
        expect(merged == (math.factorial(size) if rank == root else None))
        gathered = await world.reduce(rank, weft.Reducer.gather, root)
        expect(gathered == (list(range(size)) if rank == root else None))
    expect(await world.allreduce(rank, weft.Reducer.sum) == size * (size - 1) // 2)
    expect(await world.allreduce(rank == 0, weft.Reducer.logical_or) is True)
    array = await world.allreduce(np.full(1000, rank), weft.Reducer.max)
    expect((array == size - 1).all())
    expect(await world.allreduce("a" * (rank + 1), weft.Reducer.custom(longer)) == "a" * size)
    expect(await world.allreduce([rank], weft.Reducer.concat) == list(range(size)))
    expect(await world.allgather((rank, str(rank))) == [(i, str(i)) for i in range(size)])
    started = [world.allreduce(i, weft.Reducer.sum) for i in range(20)]
    for i in reversed(range(20)):
        expect(await started[i] == i * size)
    for wrong in (
        lambda: world.allreduce(None, None),
        lambda: world.allreduce(1, "sum"),
        lambda: world.broadcast(1, size),
        lambda: world.allreduce(weft.DeviceArray(3, "int32", "emulated"), weft.Reducer.sum),
    ):
        try:
            wrong()
            raise AssertionError("no error")
        except weft.Error:
            pass
    world.blocking_barrier()


async def unpackable(world: Team) -> None:
    size, rank = world.size, world.rank
    longest = weft.Reducer.custom(longer)
    for bad in range(size):
        value = threading.Lock() if rank == bad else "x"
        for start, all_fail in (
            (lambda value=value: world.allgather(value), True),
            (lambda value=value: world.allreduce(value, longest), True),
            (lambda value=value, bad=bad: world.broadcast(value, bad), True),
            (lambda value=value, bad=bad: world.reduce(value, longest, bad), False),
        ):
            try:
                await start()
                expect(not all_fail and rank != bad, "no error")
            except weft.Error as error:
                expect("cannot be sent" in str(error), error)
                expect(isinstance(error, weft.RemoteError) == (rank != bad), type(error))
        # Refused by Python before it is pickled.
        try:
            await world.allreduce(None if rank == bad else 1, weft.Reducer.sum)
            expect(False, "no error")
        except weft.Error as error:
            expect("None was contributed" in str(error), error)
            expect(isinstance(error, weft.RemoteError) == (rank != bad), type(error))
        expect(await world.allgather(100 + rank) == [100 + i for i in range(size)])
        expect(await world.allreduce(1, weft.Reducer.sum) == size)


async def in_place(world: Team) -> None:
    size, rank = world.size, world.rank
    for dtype in ("int8", "uint16", "int32", "int64", "float32", "float64"):
        array = np.full(3000, rank + 1, dtype)
        expect(await world.allreduce_in_place(array, weft.Reducer.sum) is array)
        expect((array == size * (size + 1) // 2).all(), dtype)
    flags = np.array([rank == 0, True])
    await world.allreduce_in_place(flags, weft.Reducer.logical_and)
    expect(flags.tolist() == [size == 1, True])
    array = np.full((100, 200), float(rank))
    await world.reduce_in_place(array, weft.Reducer.min, root=size - 1)
    expect((array == (0 if rank == size - 1 else rank)).all())
    await world.broadcast_in_place(array, root=0)
    expect((array == 0).all())
    device = weft.DeviceArray(50_000, "int32", "emulated")
    await device.copy_from(np.full(50_000, rank, np.int32))
    await world.broadcast_in_place(device, root=size - 1)
    await world.allreduce_in_place(device, weft.Reducer.sum)
    expect(((await device.to_host()) == (size - 1) * size).all())
    there = await world.rpc((rank + 1) % size, kind_of, device)
    expect(there == "emulated (50000,)", there)
    read_only = np.ones(3)
    read_only.flags.writeable = False
    for wrong, words in (
        (lambda: world.allreduce_in_place(np.ones(3, complex), weft.Reducer.sum), "complex128"),
        (lambda: world.allreduce_in_place(np.ones(3), weft.Reducer.gather), "gather"),
        (lambda: world.allreduce_in_place(read_only, weft.Reducer.sum), "read-only"),
        (lambda: world.broadcast_in_place(np.ones((4, 4))[:, 1]), "contiguous"),
        (lambda: world.broadcast_in_place([1, 2]), "list"),
    ):
        try:
            wrong()
            raise AssertionError("no error")
        except weft.Error as error:
            expect(words in str(error), error)
    if size > 1:
        uneven = np.ones(20 if rank == 0 else 10)
        error = await error_of(world.allreduce_in_place(uneven, weft.Reducer.sum))
        expect("bytes to allreduce_in_place" in error, error)


async def main(world: Team) -> int:
    expect(world.rank == weft.my_pe() and world.size == weft.num_pes())
    if MODE == "unawaited":
        if world.rank == 0:
            world.rpc_ff(world.size - 1, fail, 4)
        await weft.Future()
    elif MODE == "dropped":
        if world.rank == 0:
            world.rpc(world.size - 1, fail, 5)
        await weft.Future()
    elif MODE == "exit":
        if world.rank == world.size - 1:
            weft.exit(3)
        await weft.Future()
    elif MODE == "raise":
        if world.rank == world.size - 1:
            fail(6)
        await world.barrier()
    elif MODE == "late":
        world.rpc_ff((world.rank + 1) % world.size, print, "late", flush=True)
        return world.rank
    else:
        await calls(world)
        await objects(world)
        await teams(world)
        await values(world)
        await unpackable(world)
        await in_place(world)
        await world.barrier()
        if world.rank == 0:
            print("all checked")
    return world.rank


result = weft.pgas.run(main)
if MODE in ("all", "late"):
    expect(result is not None)
