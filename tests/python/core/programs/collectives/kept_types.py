"""Reducers count bools, and refuse what would lose the meaning of its type; checks itself."""

import collections
from array import array

import numpy as np

import weft

Point = collections.namedtuple("Point", "x y")


class Listed(list):
    pass


class Codes(array):
    pass


class Metres(np.ndarray):
    """An array with a unit, which says itself what NumPy's functions make of it."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [np.asarray(each) for each in inputs]
        return getattr(ufunc, method)(*plain, **kwargs).view(Metres)


class Part(weft.Chare):
    async def reduce(self, value, name):
        return await self.allreduce(value, getattr(weft.Reducer, name))

    def refused(self, value, name):
        for contribute in (
            lambda: self.allreduce(value, getattr(weft.Reducer, name)),
            lambda: self.contribute(value, getattr(weft.Reducer, name), weft.Future()),
        ):
            try:
                contribute()
            except weft.Error as error:
                assert f"weft.Reducer.{name} does not keep what" in str(error), error
                assert type(value).__name__ in str(error) and "weft.Reducer.gather" in str(error), error
            else:
                raise AssertionError(f"{name} of {value!r} was not refused")


def same(a, b):
    dtypes = [getattr(value, "dtype", None) for value in (a, b)]
    return type(a) is type(b) and np.array_equal(a, b) and dtypes[0] == dtypes[1]


async def count_bools(count):
    parts = weft.Array(Part, count)
    flags, int64 = np.array([True, False, True]), np.dtype("int64")
    matrix = np.ones((2, 40_000), dtype=bool)
    for value, name, expected in (
        (True, "sum", count),
        (False, "product", 0),
        (np.bool_(True), "sum", np.int64(count)),
        (np.bool_(True), "product", np.int64(1)),
        (flags, "sum", flags * int64.type(count)),
        (flags, "product", flags.astype(int64)),
        (matrix, "sum", matrix * int64.type(count)),
        ([True, False, 2.5], "sum", [count, 0, 2.5 * count]),
        ([np.bool_(True), 1], "sum", [np.int64(count), count]),
        (flags, "max", flags),
        (flags, "logical_or", flags),
        (np.bool_(True), "logical_and", True),
    ):
        for result in await parts.reduce.call(value, name):
            assert same(result, expected), (value, name, result)


async def keep_types():
    part = weft.Array(Part, 1)[0]
    masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    for value in (masked, np.ma.masked, np.matrix([[1, 2]]), Listed([1, 2]), Codes("d", [1.0])):
        for name in ("sum", "product", "min", "max", "logical_or", "concat"):
            await part.refused.call(value, name)
    for value in ((1, 2), Point(1, 2), "text", b"bytes", bytearray(b"x")):
        await part.refused.call(value, "sum")
    for value, name in ((masked, "gather"), (Point(1, 2), "max"), ((1, 2), "min")):
        assert (await part.reduce.call(value, name)) is not None
    metres = np.arange(3.0).view(Metres)
    assert type(await part.reduce.call(metres, "sum")) is Metres
    await part.refused.call(metres, "logical_and")
    kept = await part.reduce.call(masked, "gather")
    assert kept[0].mask.tolist() == [False, True, False]


async def main():
    for count in (1, 2, 5):
        await count_bools(count)
    await keep_types()
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
