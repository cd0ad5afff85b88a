"""A coroutine is closed while an operation that it awaits is in flight: the operation keeps its buffer."""

import weakref

import numpy as np

import weft

SIZE = 100_000


class End(weft.Chare):
    def receive(self, peer):
        self.channel = weft.Channel(self, peer)
        self.waiting = self.receive_into_own_room()

    async def receive_into_own_room(self):
        room = np.zeros(SIZE)
        self.room = weakref.ref(room)
        await self.channel.recv(room)

    async def wait(self):
        try:
            await self.waiting
        except RuntimeError as error:  # of Python, when the scheduler continues the closed coroutine
            return str(error)

    def close(self):
        assert self.room() is not None
        self.waiting.close()
        return self.room() is not None

    def is_free(self):
        return self.room() is None

    async def send(self, peer):
        await weft.Channel(self, peer).send(np.ones(SIZE))


async def main():
    ends = weft.Array(End, 4)
    for sender, receiver in ((0, 1), (2, 0), (1, 3)):
        await ends[receiver].receive.call(ends[sender])
        waited = ends[receiver].wait.call()
        assert await ends[receiver].close.call(), "the buffer was freed before anything has landed in it"
        await ends[sender].send.call(ends[receiver])
        assert "already awaited" in await waited
        assert await ends[receiver].is_free.call()
    print("all checked")


weft.run(main)
