"""Queued channels: numbers go around a ring of chares, ordered by their streams alone, in a graph.

weft run -n 2 examples/20_queued_channels/queued_channels.py

The devices are emulated, so it runs on any machine. On GPUs the kind is "cuda", and CuPy's streams capture
the graph.
"""

import numpy as np

import weft

KIND = "emulated"
SIZE = 5
ROUNDS = 8  # in each launch


class Ring(weft.Chare):
    async def connect(self) -> None:
        # A channel for each direction. Its number is the sender's, because two chares alone would have two.
        before = (self.index - 1) % SIZE
        landings = [weft.DeviceArray(1, np.int64, KIND) for _ in range(2)]
        self.next = weft.QueuedChannel(self, self.proxy[(self.index + 1) % SIZE], id=self.index, kind=KIND)
        self.previous = weft.QueuedChannel(self, self.proxy[before], landings, id=before)
        connecting = [self.next.connect(), self.previous.connect()]
        for each in connecting:
            await each

    async def run(self, launches: int) -> int:
        stream = weft.Stream(KIND)
        number = weft.DeviceArray(1, np.int64, KIND)
        await number.copy_from(np.array([self.index]))

        def add(mine, theirs):
            mine += theirs

        with weft.emulated.capture(stream) as graph:
            for _ in range(ROUNDS):
                self.next.send(number, stream)
                theirs = self.previous.recv(stream)
                weft.emulated.launch(add, number, theirs, stream=stream)
        for _ in range(launches):
            graph.launch(stream)  # each goes on where the one before has stopped
        await weft.stream_done(stream)
        return int((await number.to_host())[0])


async def main() -> None:
    ring = weft.Array(Ring, SIZE)
    await ring.connect.call()
    numbers = await ring.run.call(2)
    print("after 16 rounds:", *numbers)

    expected = np.arange(SIZE)
    for _ in range(2 * ROUNDS):
        expected = expected + np.roll(expected, 1)
    assert numbers == expected.tolist()


weft.run(main)
