"""The chares whose streams do everything; queued_block.h is the same in C++.

Kernels, sends and receives of faces are queued. The CPU waits at the end of run(), and when much is queued.

All sends of an iteration come before its receives. A send of iteration i waits for the neighbour's receive of
iteration i - 1, which frees the landing. A receive waits for the neighbour's send of the same iteration. So
each waits for something earlier, whatever PEs the blocks are on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft
from blocks import Block, Setup, Timeline
from face_buffers import NUM_SLOTS

#: A stream of CUDA has room for about 1000 pieces of work. Behind that the CPU would wait for the device in a
#: launch, and the other blocks of its PE could not queue the sends for which the device waits. Two batches
#: are in flight, because the device must not run dry while the CPU queues one. An iteration is up to 33
#: pieces: six sends of large faces of three each, six receives, three kernels with two events each.
BATCH_ITERATIONS = 14


class QueuedBlock(Block):
    """A block with a queued channel to each neighbour."""

    use_graphs = False

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        incoming = [self._part.buffers.incoming(slot) for slot in range(NUM_SLOTS)]
        self._channels = {
            face: weft.QueuedChannel(self, self.proxy[neighbour], [arrays[face] for arrays in incoming])
            for face, neighbour in self._part.neighbours.items()
        }
        self._is_prepared = False
        self._launch_graph: Callable[[], Any] | None = None

    async def run(self, iterations: int) -> Timeline:
        """run(0) of all blocks is over before the first iteration: what it does may wait for the device."""
        await self._prepare()
        stream = self._part.field.stream
        queued, batch_before = 0, None
        while iterations > 0:
            count = self._queue_next(iterations)
            iterations -= count
            queued += count
            if queued >= BATCH_ITERATIONS:
                batch = weft.stream_done(stream)
                if batch_before is not None:
                    await batch_before
                queued, batch_before = 0, batch
        if batch_before is not None:
            await batch_before
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
            self._launch_graph = part.field.capture(self._queue_slots)

    def _queue_next(self, most: int) -> int:
        """Queues the next iteration, or two of them if a graph can have them. Returns how many.

        A graph begins with slot 0: its messages have the landings that it names.
        """
        part = self._part
        if self._launch_graph is not None and part.slot == 0 and most >= NUM_SLOTS:
            self._launch_graph()
            part.count_iterations(NUM_SLOTS)
            return NUM_SLOTS
        self._queue_iteration(part.slot)
        part.count_iterations(1)
        return 1

    def _queue_slots(self) -> None:
        for slot in range(NUM_SLOTS):
            self._queue_iteration(slot)

    def _queue_iteration(self, slot: int) -> None:
        buffers, stream = self._part.buffers, self._part.field.stream
        buffers.queue_pack(slot)
        outgoing = buffers.outgoing(slot)
        for face, channel in self._channels.items():
            channel.send(outgoing[face], stream)
        for channel in self._channels.values():
            channel.recv(stream)
        buffers.unpack(slot)
        self._part.field.update()


class GraphBlock(QueuedBlock):
    """The same, with two iterations that are captured once, and launched again and again."""

    use_graphs = True


QUEUED_BLOCKS: dict[str, type[weft.Chare]] = {"queued": QueuedBlock, "graph": GraphBlock}
