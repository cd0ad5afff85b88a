"""Which way messages went; checks itself."""

import numpy as np

import weft


class Worker(weft.Chare):
    def hello(self):
        return self.index

    async def stream(self):
        if self.index > 1 or weft.num_pes() == 1:
            return 0
        channel = weft.Channel(self, self.proxy[1 - self.index])
        received = np.zeros(1000)
        sent = channel.send(np.ones(1000))
        await channel.recv(into=received)
        await sent
        tagged = [use for use in weft.transport_use() if use.transfer == "tagged send"]
        assert [(use.memory, use.path, use.messages, use.size_bytes) for use in tagged] == [
            ("host", "through UCX", 1, 8000)
        ], tagged
        return 1


async def main():
    workers = weft.Group(Worker)
    assert await workers.hello.call() == list(range(weft.num_pes()))
    assert sum(await workers.stream.call()) == (2 if weft.num_pes() > 1 else 0)
    others = set(range(1, weft.num_pes()))
    reached = [pe for peers in weft.peer_transports() for pe in peers.pes]
    assert others <= set(reached) <= others | {0}, reached
    assert len(reached) == len(set(reached))
    assert all("/" in peers.transports for peers in weft.peer_transports())
    if others:
        assert any(
            use.transfer == "active message" and use.path == "host queue" for use in weft.transport_use()
        )
    print("all checked")


weft.run(main)
try:
    weft.transport_use()
except weft.Error:
    pass
else:
    raise AssertionError("outside of a job there is nothing to count")
