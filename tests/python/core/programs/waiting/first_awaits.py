"""Two threads that await for the first time at once, so that both import what awaits need; checks itself."""

import asyncio
import builtins
import threading

import weft

usual_import = builtins.__import__
imported = threading.Event()
both_import = threading.Barrier(2, action=imported.set)


def import_together(name, *arguments, **keywords):
    if name == "weft._await.asyncio_edge" and threading.current_thread().name == "awaits":
        both_import.wait(timeout=60)
    return usual_import(name, *arguments, **keywords)


async def wait(future):
    return await future


async def main():
    futures, results = [weft.Future(), weft.Future()], weft.Future(2)

    def run(future):
        results.set(asyncio.run(wait(future)))

    builtins.__import__ = import_together
    for future in futures:
        threading.Thread(target=run, args=(future,), name="awaits").start()
    while not imported.is_set():
        await weft.sleep(0.001)
    for future in futures:
        future.set(1)
    assert await results == [1, 1]
    builtins.__import__ = usual_import
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
