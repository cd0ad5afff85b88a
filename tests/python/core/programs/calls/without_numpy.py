"""A program that uses neither NumPy nor asyncio does not wait for them; checks itself."""

import sys

import weft


class Echo(weft.Chare):
    def echo(self, value):
        return value

    async def total(self):
        return await self.allreduce(self.index, weft.Reducer.max)

    def loaded(self):
        return sorted({"numpy", "asyncio"} & set(sys.modules))


async def main():
    echo = weft.Array(Echo, 4)
    value = [1, "a", {1: 2.5}, {1, 2}, b"b" * 5000]
    assert await echo.echo.call(value) == [value] * 4
    assert await echo.total.call() == [3] * 4
    assert await echo.loaded.call() == [[]] * 4

    import numpy as np  # later than the extension

    for array in (np.arange(3.0), np.float32(2), np.zeros(100_000)):
        for back in await echo.echo.call(array):
            assert type(back) is type(array) and back.dtype == array.dtype and np.array_equal(back, array)
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
