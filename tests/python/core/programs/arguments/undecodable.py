"""Arguments of a call that does not decode: those that were decoded are dropped."""

import sys

import numpy as np

import weft


class Counted:
    alive = 0

    def __init__(self):
        type(self).alive += 1

    def __reduce__(self):
        return Counted, ()

    def __del__(self):
        type(self).alive -= 1


class Undecodable:
    def __reduce__(self):
        return int, ("no number",)


class Callee(weft.Chare):
    def __init__(self):
        self.room = np.zeros(9)

    def take(self, *values, last=None):
        raise AssertionError("was called")

    @weft.post_entry("take_placed")
    def post_take_placed(self, *values):
        raise AssertionError("was called")

    def take_placed(self, *values):
        raise AssertionError("was called")

    def held(self):
        return sys.getrefcount(self), Counted.alive


async def failure_of(call):
    try:
        await call
    except weft.RemoteError as error:
        return error.message
    raise AssertionError("was called")


async def main():
    for callee in weft.Array(Callee, 3):
        before = await callee.held.call()
        for count in (1, 7, 20):  # up to eight values, with the chare, are held in place
            counted = [Counted() for _ in range(count)]
            assert "no number" in await failure_of(callee.take.call(*counted, Undecodable()))
            assert "no number" in await failure_of(callee.take.call(*counted, last=Undecodable()))
            landed = callee.take_placed.call(*counted, np.zeros(9), Undecodable())
            assert "no number" in await failure_of(landed)
            del counted
        assert await callee.held.call() == before, (callee, before)
    print("all checked")


weft.run(main)
