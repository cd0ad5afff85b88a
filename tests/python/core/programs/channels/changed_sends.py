"""Check mode finds writes to the buffer of a send in flight; checks itself."""

import numpy as np

import weft

COUNT = 100_000  # numbers: too many to be copied by send()


class Talker(weft.Chare):
    async def exchange(self):
        channel = weft.Channel(self, self.proxy[1 - self.index])
        if self.index == 1:
            await channel.recv(into=np.empty(1))  # the first send has been changed by now
            received = np.empty(COUNT)
            for _ in range(3):
                await channel.recv(into=received)
            assert received[7] == 2
            return ""
        data = np.zeros(COUNT)
        channel.send(np.ones(1))
        changed = channel.send(data)
        data[7] = 1
        why = await self.refused(changed)
        await channel.send(data)
        data[7] = 2  # the send is over
        await channel.send(data)
        return why

    async def refused(self, sent):
        try:
            await sent
        except weft.Error as error:
            return str(error)
        return "no error"


async def main():
    why, _ = await weft.Array(Talker, 2).exchange.call()
    for word in (
        "Talker[0]",
        "Talker[1]",
        "id 0",
        "send 1 (800000 bytes at 0x",
        "was changed before the send was over",
    ):
        assert word in why, why
    print("all checked")


weft.run(main)
