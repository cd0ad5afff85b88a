"""Reductions of numbers, arrays and objects to all kinds of targets; checks itself."""

import numpy as np

import weft

COUNT = 9


def longest(a, b):
    return max(a, b, key=lambda text: (len(text), text))


def shortest(a, b):
    return min(a, b, key=len)


class Part(weft.Chare):
    def __init__(self):
        self.got = None

    def give(self, reducer, target):
        value = {"gather": (self.index, "x"), "concat": [self.index] * 2}.get(reducer.name, self.index + 1)
        self.contribute(value, reducer, target)

    def give_array(self, reducer, target):
        self.contribute(np.arange(4) + self.index, reducer, target)

    def give_text(self, target):
        self.contribute("abc" * (self.index % 4), weft.Reducer.custom(longest), target)

    def give_to_method(self):
        self.contribute(float(self.index), weft.Reducer.sum, self.proxy[2].take)
        self.contribute(self.index, weft.Reducer.gather, self.proxy.take_list)

    def take(self, value):
        self.got = value

    def take_list(self, values):
        self.got_list = values

    def taken(self):
        return self.got, self.got_list

    async def everybody(self):
        total = await self.allreduce(self.index, weft.Reducer.sum)
        top = await self.allreduce(self.index * 1.5, weft.Reducer.max)
        names = await self.allreduce(f"n{self.index}", weft.Reducer.gather)
        joined = await self.allreduce(np.full(2, self.index), weft.Reducer.concat)
        field = await self.allreduce(np.ones((2, 3)) * self.index, weft.Reducer.sum)
        return total, top, names, joined.tolist(), field.tolist()

    async def all_five(self, reducer):
        result = await self.allreduce(5, reducer)
        assert isinstance(result, bool)
        return result

    async def with_nan(self, index, reducer, kind):
        value = kind(float("nan") if self.index == index else self.index)
        scalar = await self.allreduce(value, reducer)
        array = await self.allreduce(np.array([value]), reducer)
        return scalar if is_nan(array[0]) else 0

    def echo(self, value):
        return value

    async def several_at_once(self):
        futures = [self.allreduce(i * self.index, weft.Reducer.sum) for i in range(5)]
        return [await future for future in futures]

    async def uneven(self):
        await self.allreduce(np.zeros(3 + self.index % 2), weft.Reducer.sum)


async def reduced(parts, reducer):
    target = weft.Future()
    parts.give(reducer, target)
    return await target


def is_nan(value):
    return value != value


async def check_nan():
    """Whichever element contributes it, as a number or in an array."""
    for index in range(COUNT):
        parts = weft.Array(Part, COUNT)
        for reducer in (weft.Reducer.min, weft.Reducer.max):
            for kind in (float, np.float64, np.float32):
                assert all(map(is_nan, await parts.with_nan.call(index, reducer, kind))), (index, reducer)


async def check_equality():
    parts = weft.Array(Part, 2)
    for reducer in (weft.Reducer.sum, weft.Reducer.custom(longest)):
        for back in await parts.echo.call(reducer):
            assert back == reducer and hash(back) == hash(reducer) and {back: 1}[reducer] == 1
            assert back is not reducer and back != weft.Reducer.min and back != "sum"
    assert weft.Reducer.custom(longest) != weft.Reducer.custom(shortest)


async def check_logical(count):
    parts = weft.Array(Part, count)
    for reducer, odd_result in (
        (weft.Reducer.logical_and, True),
        (weft.Reducer.logical_or, True),
        (weft.Reducer.logical_xor, count % 2 == 1),
    ):
        assert await reduced(parts, reducer) is odd_result
        assert await parts.all_five.call(reducer) == [odd_result] * count
        target = weft.Future()
        parts.give_array(reducer, target)
        result = await target
        assert result.dtype == bool and result[3] == odd_result


async def main():
    parts = weft.Array(Part, COUNT)
    numbers = range(1, COUNT + 1)
    assert await reduced(parts, weft.Reducer.sum) == sum(numbers)
    assert await reduced(parts, weft.Reducer.product) == np.prod(numbers)
    assert await reduced(parts, weft.Reducer.min) == 1
    assert await reduced(parts, weft.Reducer.max) == COUNT
    assert await reduced(parts, weft.Reducer.logical_and) is True
    assert await reduced(parts, weft.Reducer.logical_or) is True
    assert await reduced(parts, weft.Reducer.logical_xor) is (COUNT % 2 == 1)
    assert await reduced(parts, weft.Reducer.gather) == [(i, "x") for i in range(COUNT)]
    assert await reduced(parts, weft.Reducer.concat) == [i for i in range(COUNT) for _ in range(2)]

    for count in (1, 2, COUNT):
        await check_logical(count)
    await check_nan()
    await check_equality()

    rows = np.arange(4) + np.arange(COUNT)[:, None]
    for reducer, expected in (
        (weft.Reducer.sum, rows.sum(0)),
        (weft.Reducer.min, rows.min(0)),
        (weft.Reducer.max, rows.max(0)),
        (weft.Reducer.logical_and, rows.all(0)),
        (weft.Reducer.concat, rows.ravel()),
    ):
        target = weft.Future()
        parts.give_array(reducer, target)
        result = await target
        assert np.array_equal(result, expected) and result.dtype == expected.dtype

    target = weft.Future()
    parts.give_text(target)
    assert await target == "abcabcabc"

    parts.give_to_method()
    await weft.quiescence()
    taken = await parts.taken.call()
    assert taken[2][0] == sum(range(COUNT)) and taken[1][0] is None
    assert all(values == list(range(COUNT)) for _, values in taken)

    for total, top, names, joined, field in await parts.everybody.call():
        assert total == 36 and top == 12.0 and names == [f"n{i}" for i in range(COUNT)]
        assert joined == [i for i in range(COUNT) for _ in range(2)] and field == [[36.0] * 3] * 2
    assert await parts.several_at_once.call() == [[0, 36, 72, 108, 144]] * COUNT
    group = weft.Group(Part)
    assert (await group.everybody.call())[0][0] == sum(range(weft.num_pes()))
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
