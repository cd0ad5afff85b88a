"""A main that is an ordinary function: argument 1 says what it does."""

import asyncio
import sys
import threading

import weft


class Worker(weft.Chare):
    def hop(self, n):
        if n > 0:
            self.proxy[(self.index + 1) % len(self.proxy)].hop(n - 1)

    def hop_and_exit(self, n):
        if n > 0:
            self.proxy[(self.index + 1) % len(self.proxy)].hop_and_exit(n - 1)
        else:
            weft.exit(7)

    async def exit_later(self):
        for _ in range(20):
            await weft.sleep(0.01)
        weft.exit(7)

    async def exit_after_asyncio(self):
        await weft.asyncio_future(asyncio.sleep(0.3))
        weft.exit(7)


def start():
    return weft.Array(Worker, 2 * weft.num_pes())


def silent():
    start()[1].hop(100)


def messages():
    start()[1].hop_and_exit(100)


def timers():
    start()[1].exit_later()


def inside_asyncio():
    start()[1].exit_after_asyncio()


def thread():
    released = threading.Event()

    def act():
        released.wait()
        weft.post_from_any_thread(lambda: weft.exit(7))

    threading.Thread(target=act).start()
    silent()
    threading.Timer(0.3, released.set).start()


def at_once():
    weft.exit(7)


def generator():
    yield weft.sleep(0)


async def async_generator():
    yield weft.sleep(0)


weft.run(globals()[sys.argv[1]])
