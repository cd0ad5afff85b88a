"""asyncio's functions in entry methods: each says which function of Weft does the same; checks itself."""

import asyncio

import weft


class Worker(weft.Chare):
    async def use(self, name):
        return await FUNCTIONS[name](weft.Future())  # here


async def timeout(future):
    async with asyncio.timeout(1):
        await future


FUNCTIONS = {
    "sleep": lambda _: asyncio.sleep(1),
    "sleep0": lambda _: asyncio.sleep(0),
    "wait_for": lambda future: asyncio.wait_for(future, 1),
    "to_thread": lambda _: asyncio.to_thread(print),
    "create_task": lambda _: asyncio.create_task(asyncio.sleep(0)),
    "gather": lambda _: asyncio.gather(asyncio.sleep(0)),
    "wait": lambda future: asyncio.wait([future]),
    "loop": lambda _: asyncio.get_running_loop().create_future(),
}
if hasattr(asyncio, "timeout"):  # Python 3.11
    FUNCTIONS["timeout"] = timeout
WANTED = {
    "sleep": "weft.sleep(",
    "sleep0": "weft.yield_now()",
    "wait_for": "weft.timeout(",
    "timeout": "weft.timeout(",
    "to_thread": "weft.asyncio_future(asyncio.to_thread(",
    "create_task": "weft.gather(",
    "gather": "weft.gather",
    "wait": "weft.wait",
    "loop": "weft.asyncio_future(",
}


async def main():
    workers = weft.Array(Worker, 2)
    for name in FUNCTIONS:
        async with weft.timeout(30):
            try:
                await workers[1].use.call(name)
            except weft.RemoteError as error:
                said = error.message
                assert WANTED[name] in said, (name, said)
                assert "asyncio_functions.py" in error.traceback_text and "# here" in error.traceback_text
            else:
                raise AssertionError(f"asyncio.{name} ended")
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
