"""Between asyncio and Weft; checks itself."""

import asyncio

import weft


class Worker(weft.Chare):
    async def fetch(self, seconds):
        return await weft.asyncio_future(delayed(seconds, self.index))

    def double(self, x):
        return 2 * x


async def delayed(seconds, value):
    await asyncio.sleep(seconds)
    return value


async def failing():
    raise LookupError("from asyncio")


async def inside_asyncio(future):
    return await weft.as_asyncio(future) + 1


async def main():
    workers = weft.Array(Worker, 3)
    assert await workers.fetch.call(0.01) == [0, 1, 2]
    try:
        await weft.asyncio_future(failing())
    except weft.RemoteError as error:
        assert error.type_name == "LookupError" and "from asyncio" in str(error)
    else:
        raise AssertionError("no exception")
    assert await weft.asyncio_future(inside_asyncio(workers[2].double.call(20))) == 41
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
