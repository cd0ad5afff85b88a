"""Two chares that receive before they send, or one that computes; main awaits them, quiescence, or room."""

from __future__ import annotations

import sys

import numpy as np

import weft


class Cell(weft.Chare):
    async def exchange(self) -> None:
        channel = weft.Channel(self, self.proxy[1 - self.index])
        await channel.recv(np.empty(4))  # both wait here
        channel.send(np.empty(4))

    def send_unread(self) -> None:
        channel = weft.Channel(self, self.proxy[1 - self.index])
        if self.index == 0:
            channel.send(np.empty(1))

    def compute(self) -> None:
        if self.index == 1:
            sum(range(10**12))  # in C, for hours

    def take(self, data: bytes) -> None:
        pass


async def main() -> None:
    cells = weft.Array(Cell, 2)
    if "compute" in sys.argv:
        await cells.compute.call()
    elif "full" in sys.argv:
        cells.compute()
        while True:
            await cells[1].take(bytes(10_000))
    elif "quiescence" in sys.argv:
        cells.send_unread()
        await weft.quiescence()  # main waits for quiescence here
    else:
        await cells.exchange.call()  # main waits here


if __name__ == "__main__":
    weft.run(main)
