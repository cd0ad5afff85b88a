"""Host arguments and results of calls are values; what weft.nocopy names is read-only in flight."""

import numpy as np

import weft

SIZES = [63 << 10, 64 << 10, 1 << 20]  # around the size from which buffers travel out of band


class Box:
    """Travels by pickle, its array out of band."""

    def __init__(self, array):
        self.array = array


class Keeper(weft.Chare):
    def __init__(self):
        self.mine = None

    def keep(self, value):
        self.mine = value

    def keep_two(self, label, *, value):
        self.mine = (label, value)

    def give(self):
        return self.mine

    def give_box(self):
        return Box(self.mine)

    def give_list(self):
        return [self.mine]

    def change(self, value):
        self.mine[:] = value

    def set_and_change(self, future):
        future.set(self.mine)
        self.mine[:] = 7

    def first_and_last(self):
        array = self.mine.array if isinstance(self.mine, Box) else self.mine
        return int(array.flat[0]), int(array.flat[-1])

    @weft.post_entry("landed")
    def post_landed(self, array):
        self.room = np.zeros(array.shape, array.dtype)
        array.into(self.room)

    def landed(self, array):
        assert array is self.room
        self.mine = array

    async def is_read_only(self, array):
        return not array.flags.writeable


def pattern(size_bytes):
    return np.arange(size_bytes, dtype=np.uint8)


async def arguments(keepers):
    for keeper in keepers:
        for size in SIZES:
            expected = (0, (size - 1) % 256)
            for wrap in (lambda a: a, Box, lambda a: a.reshape(2, -1).T):
                array = pattern(size)
                called = keeper.keep.call(wrap(array))
                array[:] = 7  # at once
                await called
                got = await keeper.first_and_last.call()
                assert got == expected, (keeper, size, got)
            array = pattern(size)
            called = keeper.landed.call(array)
            array[:] = 7
            await called
            assert await keeper.first_and_last.call() == expected
            array = pattern(size)
            called = keeper.keep_two.call("x", value=[array, {"a": array}])
            array[:] = 7
            await called
            label, (first, second) = await keeper.give.call()
            assert label == "x" and first[1] == 1 and second["a"][1] == 1
            sent = [pattern(size)]
            called = keeper.keep.call(*sent)  # nobody but the list holds it
            sent[0][:] = 7
            await called
            assert await keeper.first_and_last.call() == expected


async def broadcasts(keepers):
    for size in SIZES:
        array = pattern(size)
        called = keepers.keep.call(array)
        array[:] = 7
        await called
        assert await keepers.first_and_last.call() == [(0, (size - 1) % 256)] * len(keepers)
        keepers[0].change(9)  # each has its own
        got = await keepers.first_and_last.call()
        assert got == [(9, 9)] + [(0, (size - 1) % 256)] * (len(keepers) - 1)


async def results(keepers):
    for keeper in keepers:
        for size in SIZES:
            await keeper.keep.call(pattern(size))
            for give in (keeper.give, keeper.give_box, keeper.give_list):
                result = give.call()
                keeper.change(7)  # after the method has returned, and the result is on its way
                value = await result
                await keeper.keep.call(pattern(size))
                array = (
                    value.array if isinstance(value, Box) else value[0] if isinstance(value, list) else value
                )
                assert int(array[1]) == 1, (keeper, size, give)
                array[:] = 3  # the caller's own
            await keeper.keep.call(pattern(size))
            future = weft.Future()
            keeper.set_and_change(future)
            assert int((await future)[1]) == 1, (keeper, size)


async def read_only(keepers):
    for keeper in keepers:
        for size in (8, *SIZES):
            # A short message to another PE may have left at once; one to this PE waits for its turn.
            in_flight = keeper.index == 0 or weft.num_pes() == 1 or size == SIZES[-1]
            array = pattern(size)
            view = array[:4]
            sends = [keeper.keep.send(weft.nocopy(array)) for _ in range(3)]
            if in_flight:
                try:
                    array[0] = 5
                except ValueError as error:
                    assert "read-only" in str(error)
                else:
                    raise AssertionError("an array in flight was written to")
                assert not array.flags.writeable
            assert view.flags.writeable
            for number, send in enumerate(sends):
                await send
                assert array.flags.writeable or number < 2
            array[0] = 5
            # One that was read-only stays so.
            array.flags.writeable = False
            await keeper.keep.send(weft.nocopy(array))
            assert not array.flags.writeable
            array.flags.writeable = True
            # A view: only itself.
            part = array[:]
            send = keeper.keep.send(weft.nocopy(part))
            assert part.flags.writeable != in_flight or size < SIZES[-1]
            assert array.flags.writeable
            await send
            assert part.flags.writeable
            # A structured array, and a call that cannot be sent.
            record = np.zeros(size, dtype="i4,f8")
            send = keeper.keep.send(weft.nocopy(record))
            assert record.flags.writeable != in_flight or size < SIZES[-1]
            await send
            assert record.flags.writeable
            try:
                keeper.keep([weft.nocopy(array), lambda: None])
            except weft.Error as error:
                assert "cannot be sent" in str(error)
            assert array.flags.writeable
            # The result of a call is there when the array may change again.
            assert await keeper.is_read_only.call(weft.nocopy(array)) is False
            assert array.flags.writeable
    array = pattern(1 << 20)
    send = keepers.keep.send(weft.nocopy(array))
    assert not array.flags.writeable
    await send
    assert array.flags.writeable


async def main():
    keepers = weft.Array(Keeper, 3)
    await arguments(keepers)
    await broadcasts(keepers)
    await results(keepers)
    await read_only(keepers)
    print("all checked")


weft.run(main)
