"""Collective operations in a main of weft.run, which runs on PE 0 alone; `argv[1]` is what main does."""

import sys
import threading
import time

import weft
import weft._lone_main
import weft.pgas


class Member(weft.Chare):
    """One per PE; those of PEs other than 0 take part in main's barrier."""

    async def come(self, how: str) -> None:
        if weft.my_pe() == 0:
            return
        if how == "sleeping":
            await weft.sleep(0.5)
        if how == "busy":
            time.sleep(0.5)
        await weft.pgas.world().barrier()

    async def come_behind(self, future: weft.Future[weft.Future[None]]) -> None:
        if weft.my_pe() != 0:
            mine: weft.Future[None] = weft.Future()
            future.set(mine)
            await mine
            await weft.pgas.world().barrier()


async def make_array() -> None:
    await weft.pgas.make_array((6, 4), "int64")


async def barrier() -> None:
    await weft.pgas.world().barrier()


async def broadcast() -> None:
    await weft.pgas.world().broadcast(None, 1)


async def reduce() -> None:
    await weft.pgas.world().reduce(1, weft.Reducer.sum)


async def allreduce() -> None:
    await weft.pgas.world().allreduce(1, weft.Reducer.sum)


async def split() -> None:
    await weft.pgas.world().split(0)


async def after_others() -> None:
    weft.Group(Member).come("at once")
    await weft.pgas.world().barrier()
    await weft.pgas.world().barrier()


async def with_others() -> None:
    members = weft.Group(Member)
    for how in ("at once", "sleeping", "busy"):
        members.come(how)
        await weft.pgas.world().barrier()
    print("all checked")


async def waiting_others() -> None:
    """The others wait for what a thread of PE 0 does when the sentence has been printed."""
    weft._lone_main._PATIENCE_S = 0.0
    others: weft.Future[weft.Future[None]] = weft.Future()
    is_printed = threading.Event()
    stderr = sys.stderr

    class Noticed:
        def write(self, text: str) -> int:
            if "weft" in text:
                is_printed.set()
            return stderr.write(text)

        def flush(self) -> None:
            stderr.flush()

    def act() -> None:
        is_printed.wait()
        weft.post_from_any_thread(lambda: others.result().set(None))

    sys.stderr = Noticed()
    threading.Thread(target=act).start()
    weft.Group(Member).come_behind(others)
    await weft.pgas.world().barrier()
    sys.stderr = stderr
    print("all checked")


weft.run(globals()[sys.argv[1]])
