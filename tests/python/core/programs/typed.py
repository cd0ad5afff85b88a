"""What type checkers know of a program; also runs. See test_types.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import assert_type

import weft


class Block(weft.Chare):
    def __init__(self, size: int) -> None:
        self.size = size

    async def swap(self, peer: weft.ElementProxy) -> float:
        channel = weft.Channel(self, peer, id=3)
        channel.send(np.ones(self.size))
        received = await channel.recv(into=np.zeros(self.size))
        assert_type(received.sum(), Any)
        return float(await self.allreduce(received.sum(), weft.Reducer.sum))


async def main() -> int:
    blocks = weft.Array(Block, (1, 2), args=(3,), map="round_robin")
    assert_type(blocks, weft.Array)
    calls = [blocks[0, 0].swap.call(blocks[0, 1]), blocks[0, 1].swap.call(blocks[0, 0])]
    assert [await call for call in calls] == [6.0, 6.0]
    future: weft.Future[int] = weft.Future()
    future.set(5)
    assert_type(await future, int)
    assert_type(await weft.sleep(0), None)
    return await future


assert_type(weft.run(main), int | None)
