"""Calls that land in one posted buffer wait for each other; results wait for their calls' sends."""

import numpy as np

import weft

SIZE = 100_000


class Sink(weft.Chare):
    def __init__(self):
        self.room = np.zeros(SIZE)
        self.numbers = []

    @weft.post_entry("take")
    def post_take(self, number, values):
        values.into(self.room)

    def take(self, number, values):
        assert values is self.room
        assert (values == number).all(), f"call {number} got {np.unique(values)}"
        self.numbers.append(number)

    @weft.post_entry("take_later")
    def post_take_later(self, number, values, go_on):
        values.into(self.room)

    async def take_later(self, number, values, go_on):
        self.take(number, values)
        await weft.sleep(0)

    @weft.post_entry("take_two")
    def post_take_two(self, first, second):
        first.into(self.room)
        second.into(self.room[10:])

    def take_two(self, first, second):
        raise AssertionError("was run")

    def taken(self):
        return sorted(self.numbers)

    async def first_of(self, values):
        return float(values[0])


async def main():
    sinks = weft.Array(Sink, 3)
    for sink in sinks:
        calls = [sink.take.call(n, weft.nocopy(np.full(SIZE, float(n)))) for n in range(10)]
        calls += [sink.take.call(n, np.full(SIZE, float(n))) for n in range(10, 20)]  # values land there too
        calls += [sink.take_later.call(n, np.full(SIZE, float(n)), None) for n in range(20, 30)]
        for call in calls:
            await call
        assert await sink.taken.call() == list(range(30))
        try:
            await sink.take_two.call(np.zeros(SIZE // 2), np.zeros(SIZE // 2))
        except weft.RemoteError as error:
            assert error.type_name == "weft.Error" and "give each its own" in error.message
        # A result is there when the arrays of the call may change again.
        array = np.ones(SIZE)
        assert await sink.first_of.call(weft.nocopy(array)) == 1
        array[:] = 2
        assert await sinks.first_of.call(weft.nocopy(array)) == [2, 2, 2]
        array[:] = 3
    print("all checked")


weft.run(main)
