"""A main that is an ordinary function: argument 1 says what it does."""

import asyncio
import importlib.abc
import importlib.machinery
import sys
import threading

import weft
from weft._job import plain_main


class Worker(weft.Chare):
    def hop(self, n):
        if n > 0:
            self.proxy[(self.index + 1) % len(self.proxy)].hop(n - 1)

    def step(self):
        return self.index

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


class Driver(weft.Chare):
    """Goes from phase to phase without a sleep, and exits after the last."""

    def __init__(self, folder=None):
        self.folder = folder
        self.workers = weft.Array(Worker, 8)

    def work(self):
        for i in range(8):
            self.workers[i].hop(5)

    def next_phase(self, phase):
        self.work()
        if phase == PHASES:
            weft.exit(7)
        elif self.folder is None:
            weft.quiescence(self.proxy[0].next_phase.bind(phase + 1))
        else:
            weft.quiescence().then(lambda _: self.proxy[0].next_phase(phase + 1))

    async def await_phases(self):
        for _ in range(PHASES):
            self.work()
            await weft.quiescence()
        weft.exit(7)

    async def save_phases(self):
        for _ in range(30):
            await self.workers.step.call()
            await weft.checkpoint(self.folder, {"workers": self.workers})
        weft.exit(7)

    async def await_with_timeouts(self):
        for _ in range(PHASES):
            await weft.wait([self.workers.step.call()], timeout=3600)
        weft.exit(7)


PHASES = 300


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


def target():
    weft.Singleton(Driver, 0).next_phase(0)


def then():
    weft.Singleton(Driver, weft.num_pes() - 1, args=("then",)).next_phase(0)


def awaited():
    weft.Singleton(Driver, weft.num_pes() - 1).await_phases()


def timeouts():
    weft.Singleton(Driver, weft.num_pes() - 1).await_with_timeouts()


def checkpoint():
    weft.Singleton(Driver, weft.num_pes() - 1, args=(sys.argv[2],)).save_phases()


def thread():
    released = threading.Event()

    def act():
        released.wait()
        weft.post_from_any_thread(lambda: weft.exit(7))

    threading.Thread(target=act).start()
    silent()
    threading.Timer(0.3, released.set).start()


class SlowImport(importlib.abc.MetaPathFinder):
    """Finds the module of weft.as_concurrent, whose import goes on when `polled` is set."""

    def __init__(self, polled):
        self.polled = polled

    def find_spec(self, name, path, target=None):
        if name != "weft._await.asyncio_edge":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module
        spec.loader.exec_module = lambda module: self.polled.wait(60) and execute(module)
        return spec


def importing():
    """The watch asks whether something may happen while a thread imports a part of Weft."""
    polled = threading.Event()
    may_act = plain_main.may_act

    def may_act_and_tell():
        answer = may_act()
        polled.set()
        return answer

    plain_main.may_act = may_act_and_tell
    sys.meta_path.insert(0, SlowImport(polled))

    def act():
        assert weft.as_concurrent
        weft.post_from_any_thread(lambda: weft.exit(7))

    threading.Thread(target=act).start()


def at_once():
    weft.exit(7)


def generator():
    yield weft.sleep(0)


async def async_generator():
    yield weft.sleep(0)


weft.run(globals()[sys.argv[1]])
