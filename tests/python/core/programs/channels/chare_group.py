"""Collectives of device arrays among the elements of a group, and of an array. Prints "all checked"."""

from __future__ import annotations

import numpy as np

import weft

KIND = "emulated"


class Member(weft.Chare):
    async def run(self, count: int) -> list[float]:
        group = await weft.device_group(self, KIND)
        assert (group.rank, group.size) == (self.rank(), count)
        stream = weft.Stream(KIND)
        mine = weft.DeviceArray(3, "float32", KIND)
        total = weft.DeviceArray(3, "float32", KIND)
        await mine.copy_from(np.full(3, 1.0 + self.rank(), "float32"))
        for _ in range(3):
            group.all_reduce(mine, total, stream=stream)
            group.broadcast(mine, root=count - 1, stream=stream)
        await group.over()
        assert await self.allreduce(1, weft.Reducer.sum) == count, "reductions go on"
        result = (await total.to_host()).tolist()
        await group.close()
        return result

    def rank(self) -> int:
        index = self.index
        return index if isinstance(index, int) else index[0] * 2 + index[1]


class Misuser(weft.Chare):
    async def run(self) -> str:
        try:
            await weft.device_group(self, KIND, place_bytes=0 if self.index == 0 else None)
        except weft.Error as error:
            return str(error)
        return ""


async def main() -> None:
    pes = weft.num_pes()
    for members, count in ((weft.Group(Member), pes), (weft.Array(Member, (pes, 2)), 2 * pes)):
        assert await members.run.call(count) == [[float(count * count)] * 3] * count
    for error in await weft.Group(Misuser).run.call():
        assert "a place of 0 bytes cannot be used" in error, error
    for wrong in (5, weft.Group(Member)):
        try:
            weft.device_group(wrong, KIND)
        except weft.Error as error:
            assert "takes the chare that becomes a member" in str(error)
        else:
            raise AssertionError(wrong)
    print("all checked")


weft.run(main)
