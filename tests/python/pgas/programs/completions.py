"""What a copy reports besides its end, callbacks, several waiters, and copies on streams."""

import numpy as np

import weft
import weft.emulated
import weft.pgas as pgas

arrivals: list[tuple[int, object]] = []


def arrived(step: int, values: object = None) -> None:
    arrivals.append((step, values))


def set_there(memory: pgas.DistObject, step: int) -> None:
    arrivals.append((step, memory.value))


async def until(holds) -> None:
    while not holds():
        await weft.yield_now()


async def waiter(operation) -> object:
    return await operation


async def reports(world: pgas.Team, pointers: list[pgas.GlobalPointer]) -> None:
    values = np.arange(5.0)
    other = pointers[(world.rank + 1) % world.size]
    free = weft.Future()
    await pgas.copy(values, other, source=free, remote=(arrived, world.rank, [1, "two"]))
    assert await free is None
    await until(lambda: arrivals)
    assert arrivals == [((world.rank - 1) % world.size, [1, "two"])]
    arrivals.clear()
    await world.barrier()
    named = pgas.DistObject(world, f"of rank {world.rank}")
    await pgas.copy(pointers[0], other + 5, 3, remote=(set_there, named, 4))
    await pgas.copy_indexed(values, [0], other, [1], remote=(arrived, 5))
    await pgas.copy_strided(values, None, other, (8,), 5, remote=lambda_free)
    await until(lambda: len(arrivals) == 3)
    assert sorted(arrivals) == [(4, f"of rank {world.rank}"), (5, None), (6, None)], arrivals
    await world.barrier()
    for wrong, text in (
        ("text", "as `remote`, not text"),
        ((lambda: None,), "as `remote`, and reports.<locals>.<lambda> is defined inside a function"),
        ((arrived, lambda: None), "an argument of"),
    ):
        try:
            pgas.copy(values, other, remote=wrong)
        except weft.Error as error:
            assert text in str(error), str(error)
            continue
        raise AssertionError("not refused")
    try:
        pgas.copy(values, other, source=3)
    except weft.Error as error:
        assert "weft.Future" in str(error)
    else:
        raise AssertionError("not refused")


async def sources_that_are_used_twice(other: pgas.GlobalPointer) -> None:
    """Nothing moves then."""

    def expect_refused(future: weft.Future) -> None:
        try:
            pgas.copy(np.full(5, 9.0), other, source=future)
        except weft.Error as error:
            assert "weft.pgas.copy got as `source` a future that is set" in str(error), error
            return
        raise AssertionError("not refused")

    over, by_the_program, in_flight = weft.Future(), weft.Future(), weft.Future()
    await pgas.copy(np.zeros(5), other, source=over)
    expect_refused(over)  # whether or not it is set already
    await over
    expect_refused(over)
    by_the_program.set(None)
    expect_refused(by_the_program)
    device = weft.DeviceArray(5, "f8", "emulated")
    await device.copy_from(np.zeros(5))
    slow = pgas.copy(device, other, source=in_flight)
    expect_refused(in_flight)
    await slow
    assert await in_flight is None
    assert (await pgas.get(other, 5) == 0).all(), "a copy that was refused has moved data"
    of_two = weft.Future(2)
    for value in (1.0, 2.0):
        await pgas.copy(np.full(5, value), other, source=of_two)
    expect_refused(of_two)
    assert await of_two == [None, None]


async def of_no_elements(world: pgas.Team) -> None:
    """Reports of copies of nothing, as a program makes them whose sizes depend on its data."""
    array = await pgas.make_array((2 * world.size, 2))
    await world.barrier()
    last = 2 * world.size - 1
    nothing = np.zeros((0, 2))
    for source, target in (
        (array[0:0], nothing),
        (nothing, array[last:last]),
        (array[0:0], array[last : last - 1]),
        (array[2:1:1], array.pointer((0, 0))),
        (array[[]], nothing),
        (nothing, array[[]]),
        (array[:, 0:0], np.zeros((2 * world.size, 0))),
    ):
        free = weft.Future()
        arrivals.clear()
        await pgas.copy(source, target, source=free)
        assert await free is None
    await pgas.copy(array[0:0], nothing)
    await world.barrier()
    arrivals.clear()
    await world.barrier()
    if world.rank == 0:
        await pgas.copy(nothing, array[last:last], remote=(arrived, 7))
    if world.rank == world.size - 1:
        await until(lambda: arrivals)
        assert arrivals == [(7, None)], arrivals
    arrivals.clear()
    await world.barrier()


def lambda_free() -> None:
    arrivals.append((6, None))


async def operations(other: pgas.GlobalPointer) -> None:
    """Those that are over at once, and others, are used alike."""
    device = weft.DeviceArray(4, "f8", "emulated")
    await device.copy_from(np.ones(4))
    await other.learn()
    at_once, later = pgas.put(2.0, other), pgas.put(device, other + 4)
    assert at_once.done() and at_once.result() is None and not later.done()
    called = []
    for operation in (at_once, later):
        operation.then(lambda ended: called.append(ended.result()))
    await weft.gather(at_once, later)
    await until(lambda: len(called) == 2)
    assert await pgas.get(other) == 2 and (await pgas.get(other + 4, 4) == 1).all()
    slow = pgas.get(other + 4, out=weft.DeviceArray(4, "f8", "emulated"))
    assert len({id(result) for result in await weft.gather(waiter(slow), waiter(slow))}) == 1
    assert await slow is slow.result()
    try:
        pgas.get(other, out=weft.DeviceArray(4, "f8", "emulated")).result()
    except weft.Error as error:
        assert "not over yet" in str(error)
    else:
        raise AssertionError("not refused")
    # An await of an operation that is over takes a turn now and then, so that the PE serves others.
    turns = weft.Future()
    weft.sleep(0).then(lambda _: turns.set(None))
    while not turns.done():
        await pgas.get(other)


async def streams(world: pgas.Team) -> None:
    segment = pgas.make_segment(4, "f8", "emulated")
    target = pgas.make_segment(4, "f8", "emulated")
    await pgas.put(np.zeros(4), segment.pointer())
    await pgas.put(np.zeros(4), target.pointer())
    stream = weft.Stream("emulated")

    def fill(array):
        array[:] = 8

    weft.emulated.launch(fill, segment.local, stream=stream)
    await pgas.copy_on_stream(segment.pointer(), target.pointer(), 4, stream)
    assert (await target.local.to_host() == 8).all()

    def fill_again(array):
        array[:] = 9

    weft.emulated.launch(fill_again, segment.local, stream=stream)
    host = np.zeros(4)
    await pgas.copy(segment.pointer(), host, stream=stream)
    assert (host == 9).all(), "the copy did not wait for the stream"
    weft.emulated.launch(fill, segment.local, stream=stream)
    await pgas.copy(segment.local.on(stream), target.pointer())
    assert (await target.local.to_host() == 8).all(), "the array's stream does not count"
    for wrong in (
        lambda: pgas.copy(host, pgas.make_segment(4).pointer(), stream=stream),
        lambda: pgas.copy_on_stream(segment.pointer(), target.pointer(), -1, stream),
        lambda: pgas.copy_on_stream(segment.pointer(), target.pointer(), 4, None),
        lambda: pgas.copy_on_stream(segment.pointer(), target.pointer() + 1, 4, stream),
    ):
        try:
            wrong()
        except weft.Error:
            continue
        raise AssertionError("not refused")


async def main(world: pgas.Team) -> None:
    segment = pgas.make_segment(10)
    pointers = await world.allgather(segment.pointer())
    await reports(world, pointers)
    await world.barrier()
    await sources_that_are_used_twice(pointers[(world.rank + 1) % world.size])
    await world.barrier()
    await of_no_elements(world)
    await operations(pointers[(world.rank + 1) % world.size])
    await streams(world)
    await world.barrier()
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
