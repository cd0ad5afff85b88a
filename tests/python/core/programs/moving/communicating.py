"""Chares that talk to one another, for load balancing. Prints the edges of each step, then "all checked".

communicating.py: with the strategy that WEFT_LB names.
"""

from __future__ import annotations

import numpy as np

import weft
from weft import load_balancing

COUNT = 8


@load_balancing.strategy("reads", communication=True)
def reads(snapshot: load_balancing.Snapshot) -> list[int]:
    for edge in snapshot.edges:
        print("edge", edge.source, edge.target, edge.messages, edge.bytes)
    return snapshot.pes()


@load_balancing.strategy("ignores")
def ignores(snapshot: load_balancing.Snapshot) -> list[int]:
    assert snapshot.edges == []
    return snapshot.pes()


class Talker(weft.Chare):
    def tell(self, to: int, size_bytes: int) -> None:
        self.proxy[to].hear(np.zeros(size_bytes, dtype=np.uint8))

    async def ask(self, to: int) -> None:
        await self.proxy[to].hear.call(b"")

    def hear(self, data: object) -> None:
        pass

    async def stream(self, peer: int, sends: bool) -> None:
        channel = weft.Channel(self, self.proxy[peer])
        array = np.zeros(1000)
        if sends:
            await channel.send(array)
        else:
            await channel.recv(into=array)

    def step(self, over: weft.Future[int]) -> None:
        self.over = over
        self.at_sync()

    def resume_from_sync(self) -> None:
        self.contribute(1, weft.Reducer.sum, self.over)


async def main() -> None:
    talkers = weft.Array(Talker, COUNT)
    for _ in range(3):
        await talkers[0].tell.call(1, 1000)  # on one PE
        await talkers[0].tell.call(COUNT - 1, 1000)
    await talkers[1].tell.call(COUNT - 2, 100_000)
    await talkers[2].ask.call(3)
    sent = talkers[4].stream.call(5, True)
    await talkers[5].stream.call(4, False)
    await sent
    await talkers[0].tell.call(0, 1000)  # to itself
    for _ in range(2):
        over = weft.Future()
        talkers.step(over)
        assert await over == COUNT
    print("all checked")


weft.run(main)
