"""The chares whose streams do everything; queued_block.h is the same in C++.

Kernels, sends and receives of faces are queued. The CPU waits at the end of run(), and when much is queued.

All sends of an iteration come before its receives. A send of iteration i waits for the neighbour's receive of
iteration i - 1, which frees the landing. A receive waits for the neighbour's send of the same iteration. So
each waits for something earlier, whatever PEs the blocks are on.
"""

from __future__ import annotations

import weft
from blocks import Block, Setup, Timeline
from face_buffers import NUM_SLOTS
from weft_bench.queued_work import QueuedIterations

#: Of an iteration on a stream: two launches and six copies of large faces, three kernels with two events
#: each.
MOST_PIECES = 17


class QueuedBlock(Block):
    """A block with a queued channel to each neighbour."""

    use_graphs = False

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        part = self._part
        incoming = [part.buffers.incoming(slot) for slot in range(NUM_SLOTS)]
        self._channels = {
            face: weft.QueuedChannel(self, self.proxy[neighbour], [arrays[face] for arrays in incoming])
            for face, neighbour in part.neighbours.items()
        }
        self._iterations = QueuedIterations(
            part.field.stream, self._queue_iteration, MOST_PIECES, part.count_iterations
        )
        self._is_prepared = False

    async def run(self, iterations: int) -> Timeline:
        """run(0) of all blocks is over before the first iteration: what it does may wait for the device."""
        await self._prepare()
        await self._iterations.run(iterations)
        return await self._part.finish()

    async def _prepare(self) -> None:
        """Does what may wait for the device: connects, compiles the kernels, and captures the graph.

        A stream that waits for another block of this PE would then wait for ever.
        """
        if self._is_prepared:
            return
        self._is_prepared = True
        connecting = [channel.connect() for channel in self._channels.values()]
        for connected in connecting:
            await connected
        part = self._part
        for slot in range(NUM_SLOTS):
            part.buffers.queue_pack(slot)
            part.buffers.unpack(slot)  # ghost points, which get their values before they are used
        part.field.rehearse_update()
        await part.field.done()
        if self.use_graphs:
            self._iterations.capture(part.field.capture)

    def _queue_iteration(self, slot: int) -> None:
        buffers, stream = self._part.buffers, self._part.field.stream
        buffers.queue_pack(slot)
        outgoing = buffers.outgoing(slot)
        weft.QueuedChannel.exchange_all(
            self._channels.values(), [outgoing[face] for face in self._channels], stream
        )
        buffers.unpack(slot)
        self._part.field.update()


class GraphBlock(QueuedBlock):
    """The same, with two iterations that are captured once, and launched again and again."""

    use_graphs = True


QUEUED_BLOCKS: dict[str, type[weft.Chare]] = {"queued": QueuedBlock, "graph": GraphBlock}
