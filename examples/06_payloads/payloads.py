"""Arrays as arguments without a copy: from host memory, and from device to device into a place that the
callee chooses. Runs on emulated devices; with GPUs say KIND = "cuda".

weft run -n 2 examples/06_payloads/payloads.py
"""

import numpy as np

import weft

SIZE = 1000
KIND = "emulated"


class Block(weft.Chare):
    def __init__(self):
        self._face = weft.DeviceArray(SIZE, float, KIND)
        self._ghost = weft.DeviceArray(SIZE, float, KIND)
        self._stream = weft.Stream(KIND)
        self._has_halo = weft.Future()

    def store(self, label, values):
        """The elements have landed when it runs."""
        self._report = f"{label}: {int(values.sum())}"

    def report(self):
        return self._report

    @weft.post_entry("halo")
    def post_halo(self, values):
        """Runs when a call of halo arrives, before its elements do: says where they land."""
        values.into(self._ghost, self._stream)

    def halo(self, values):
        """Runs when they are in self._ghost."""
        self._has_halo.set()

    async def exchange(self):
        """Sends this block's face to the other one, and returns what it got from there."""
        await self._face.copy_from(np.full(SIZE, 1.0 + self.index))
        sent = self.proxy[1 - self.index].halo.send(self._face)
        await self._has_halo
        await sent  # now self._face may be written to again
        return float((await self._ghost.to_host())[-1])


async def main():
    blocks = weft.Array(Block, 2)

    data = np.full(SIZE, 0.5)
    await blocks[1].store.call("half of them", weft.nocopy(data))  # in place until it returns
    print(await blocks[1].report.call())

    received = await blocks.exchange.call()
    print(f"block 0 got {received[0]:g}, block 1 got {received[1]:g}")


weft.run(main)
