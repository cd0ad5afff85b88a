"""Arrays of more than 2 GiB: an argument, also in place, and a message of a channel. Prints "all checked"."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

SIZE = 2**31 + 4097
MARKS = (0, SIZE // 2, 2**31 - 1, 2**31, SIZE - 1)


def marked(first: int) -> np.ndarray[Any, Any]:
    """Zeros, whose pages take no memory until they are written, and a few marks."""
    array = np.zeros(SIZE, np.uint8)
    for i, place in enumerate(MARKS):
        array[place] = first + i
    return array


class Taker(weft.Chare):
    def take(self, array: np.ndarray[Any, Any]) -> list[int]:
        assert array.size == SIZE
        return [int(array[place]) for place in MARKS]

    async def receive(self, peer: Any) -> list[int]:
        array = np.empty(SIZE, np.uint8)
        await weft.Channel(self, peer).recv(into=array)
        return self.take(array)

    async def send(self, peer: Any) -> None:
        await weft.Channel(self, peer).send(marked(7))


async def main() -> None:
    takers = weft.Array(Taker, 2)
    assert await takers[1].take.call(marked(1)) == [1, 2, 3, 4, 5]
    assert await takers[1].take.call(weft.nocopy(marked(3))) == [3, 4, 5, 6, 7]
    received = takers[1].receive.call(takers[0])
    await takers[0].send.call(takers[1])
    assert await received == [7, 8, 9, 10, 11]
    print("all checked")


weft.run(main)
