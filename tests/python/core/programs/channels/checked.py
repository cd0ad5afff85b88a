"""Channels in check mode: a receive of other elements than were sent is an error; checks itself."""

import numpy as np

import weft


class Talker(weft.Chare):
    async def exchange(self):
        channel = weft.Channel(self, self.proxy[1 - self.index])
        if self.index == 0:
            channel.send(np.arange(6, dtype=np.float64))
            channel.send(np.zeros((2, 3)))
            channel.send(np.arange(6, dtype=np.float64).reshape(2, 3))
            channel.send(bytes(48))
            return
        assert "int64[6], and the message is float64[6]" in await self.refused(channel, np.zeros(6, np.int64))
        assert "float64[3, 2], and the message is float64[2, 3]" in await self.refused(
            channel, np.zeros((3, 2))
        )
        flat = await channel.recv(into=np.empty(6))
        assert flat.tolist() == [0, 1, 2, 3, 4, 5]
        assert (await channel.recv(into=np.ones(6))).tolist() == [0] * 6, "plain bytes fit everything"

    async def refused(self, channel, into):
        try:
            await channel.recv(into=into)
        except weft.Error as error:
            return str(error)
        return "no error"


async def main():
    await weft.Array(Talker, 2).exchange.call()
    print("all checked")


weft.run(main)
