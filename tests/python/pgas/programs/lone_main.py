"""Collective operations in a main of weft.run, which runs on PE 0 alone; `argv[1]` is what main does.

With `argv[2]`, the patience of the watch in seconds, its sentence ends the job with code 3.
"""

import io
import sys
import time
import typing

import weft
import weft._pgas.lone_main
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


class Full(io.TextIOBase):
    """In place of stderr: as a file on a disk that is full. Ends the job when main has waited on."""

    def write(self, text: str) -> int:
        weft.post_from_any_thread(lambda: weft.post_from_any_thread(lambda: weft.exit(3)))
        raise OSError(28, "No space left on device")


class EndsTheJob(io.TextIOBase):
    """In place of stderr: ends the job when the sentence has been printed."""

    def __init__(self, stderr: typing.TextIO) -> None:
        self._stderr = stderr

    def write(self, text: str) -> int:
        if "waits in" in text:
            weft.exit(3)
        return self._stderr.write(text)

    def flush(self) -> None:
        self._stderr.flush()


if len(sys.argv) > 2:
    weft._pgas.lone_main._TIMEOUT_S = float(sys.argv[2])
    made = Full() if "full" in sys.argv else EndsTheJob(sys.stderr)
    sys.stderr = typing.cast(typing.TextIO, made)
weft.run(globals()[sys.argv[1]])
