"""weft.run on a thread beside an event loop on the main thread, as servers want it; checks itself."""

import asyncio
import concurrent.futures
import threading

import weft


class Doubler(weft.Chare):
    def double(self, x):
        return 2 * x


made = concurrent.futures.Future()


async def main():
    stop = weft.Future()
    made.set_result((weft.Array(Doubler, 4), stop))
    await stop


def run():
    weft.run(main)
    if not made.done():  # another PE than 0
        made.set_result(None)


async def serve():
    job = await asyncio.wrap_future(made)
    if job is None:
        return
    doublers, stop = job
    calls = [doublers[i].double.call(i) for i in range(4)]
    assert await asyncio.gather(*calls) == [0, 2, 4, 6]
    stop.set()
    print("all checked")


thread = threading.Thread(target=run)
thread.start()
asyncio.run(serve())
thread.join()
