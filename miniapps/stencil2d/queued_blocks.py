"""The chares whose streams do everything: kernels, sends and receives of halos are queued.

All sends of an iteration come before its receives. A send of iteration i waits for the neighbour's receive of
iteration i - 1, which frees the landing. A receive waits for the neighbour's send of the same iteration. So
each waits for something earlier, whatever PEs the blocks are on.
"""

from __future__ import annotations

from dataclasses import dataclass

import weft
from field import Field
from grid import Problem, neighbours, range_of
from kernels import Values
from weft_bench.queued_work import NUM_SLOTS, QueuedIterations
from weft_kernels import make_kernels

#: Of an iteration on a stream: two launches and four copies of large halos, three kernels.
MOST_PIECES = 9


@dataclass(frozen=True)
class Setup:
    """The constructor argument of every block."""

    problem: Problem
    memory: str
    kernel: str


class QueuedBlock(weft.Chare):
    """A block of the grid. The halos of a slot arrive where its kernels read them."""

    use_graphs = False

    def __init__(self, setup: Setup) -> None:
        around = neighbours(setup.problem, self.index)
        self._kernels = make_kernels(setup.memory, setup.kernel)
        self._field = Field(self._kernels, range_of(setup.problem, self.index), around)
        incoming = self._field.incoming
        self._channels = {
            side: weft.QueuedChannel(
                self, self.proxy[peer], [incoming[slot][side] for slot in range(NUM_SLOTS)]
            )
            for side, peer in around.items()
        }
        self._iterations = QueuedIterations(self._kernels.stream, self._queue_iteration, MOST_PIECES)

    async def prepare(self) -> None:
        """Connects, compiles the kernels and captures the graph, before any block queues an iteration.

        All of it may wait for the device, and a stream that waits for another block of this PE would then
        wait for ever.
        """
        connecting = [channel.connect() for channel in self._channels.values()]
        for connected in connecting:
            await connected
        field = self._field
        for slot in range(NUM_SLOTS):  # ghost points get their values before they are used
            field.pack(slot)
            field.unpack(slot)
        field.update(0)  # the first iteration computes these points again
        await weft.stream_done(self._kernels.stream)
        if self.use_graphs:
            self._iterations.capture(self._kernels.capture)

    async def run(self, iterations: int) -> None:
        await self._iterations.run(iterations)
        await weft.stream_done(self._kernels.stream)

    async def values(self) -> Values:
        """Without ghost points."""
        host = await self._field.points[self._iterations.slot].to_host(self._kernels.stream)
        return host[1:-1, 1:-1].copy()

    def _queue_iteration(self, slot: int) -> None:
        field = self._field
        field.pack(slot)
        outgoing = field.outgoing[slot]
        weft.QueuedChannel.exchange_all(
            self._channels.values(), [outgoing[side] for side in self._channels], self._kernels.stream
        )
        field.unpack(slot)
        field.update(slot)


class GraphBlock(QueuedBlock):
    """The same, with two iterations that are captured once, and launched again and again."""

    use_graphs = True


QUEUED_BLOCKS: dict[str, type[weft.Chare]] = {"queued": QueuedBlock, "graph": GraphBlock}
