"""The chares: the part that all kinds of block share, and how each kind exchanges its halos."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import weft
from decomposition import Problem, Triple, neighbours, opposite, range_of
from face_buffers import NUM_SLOTS, FaceBuffers
from field import Field
from kernels import Array, Interval, make_kernels
from stencil import Values


@dataclass(frozen=True)
class Setup:
    """The constructor argument of every block.

    `progress` is the proxy to which block (0, 0, 0) reports every `report_every` iterations; 0 is never.
    """

    problem: Problem
    memory: str
    host_staging: bool
    kernel: str
    progress: Any = None
    report_every: int = 0


@dataclass
class Timeline:
    """When the kernels of a block ran, and on which PE."""

    pe: int
    intervals: list[Interval] = field(default_factory=list)


class Part:
    """The part of a block that all models share: its part of the grid, its neighbours, its buffers."""

    def __init__(self, setup: Setup, index: Triple) -> None:
        self.setup = setup
        self.neighbours = neighbours(setup.problem, index)
        self._kernels = make_kernels(setup.memory, setup.kernel)
        self.field = Field(range_of(setup.problem, index), self._kernels)
        self.buffers = FaceBuffers(self.field, self._kernels, self.neighbours, setup.host_staging)
        self.iteration = 0
        self._report_every = setup.report_every if index == (0, 0, 0) else 0

    @property
    def slot(self) -> int:
        """Which of the buffers the current iteration uses."""
        return self.iteration % NUM_SLOTS

    def update(self) -> None:
        """Ends the iteration: queues its update."""
        self.field.update()
        self.count_iterations(1)

    def count_iterations(self, count: int) -> None:
        """So many iterations have been queued."""
        before, self.iteration = self.iteration, self.iteration + count
        if self._report_every and self.iteration // self._report_every != before // self._report_every:
            self.setup.progress.advance(self.iteration)

    async def finish(self) -> Timeline:
        """Waits for the device."""
        await self.field.done()
        return Timeline(weft.my_pe(), self._kernels.take_intervals())


class Block(weft.Chare):
    """The part that messaging and channels share."""

    def __init__(self, setup: Setup) -> None:
        self._part = Part(setup, self.index)
        self._sends: list[list[Any]] = [[] for _ in range(NUM_SLOTS)]

    async def run(self, iterations: int) -> Timeline:
        for _ in range(iterations):
            await self._iterate()
        for slot in range(NUM_SLOTS):
            await self._sent(slot)
        return await self._part.finish()

    async def values(self) -> Values:
        return await self._part.field.values()

    async def checksum(self) -> int:
        return await self._part.field.checksum(self._part.setup.problem.points)

    async def _iterate(self) -> None:
        raise NotImplementedError

    async def _sent(self, slot: int) -> None:
        """Waits until the slot's buffers are free again."""
        sends, self._sends[slot] = self._sends[slot], []
        for send in sends:
            await send


class MessagingBlock(Block):
    """A block whose faces are arguments of an entry method.

    They are sent in place and land where the post entry method says, in the buffers that are unpacked.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._num_halos = [0] * NUM_SLOTS
        self._all_halos = [weft.Future() for _ in range(NUM_SLOTS)]

    @weft.post_entry("halo")
    def post_halo(self, iteration: int, face: int, values: weft.ReceiveBuffer) -> None:
        values.into(self._part.buffers.incoming(iteration % NUM_SLOTS)[face])

    def halo(self, iteration: int, face: int, values: Any) -> None:
        """The ghost points of one side for `iteration`, from the neighbour there.

        Messages overtake one another and neighbours run ahead, by one iteration at most, since they need this
        block's halo for the one after.
        """
        slot = iteration % NUM_SLOTS
        self._num_halos[slot] += 1
        if self._num_halos[slot] == len(self._part.neighbours):
            self._all_halos[slot].set()

    async def _iterate(self) -> None:
        part, slot = self._part, self._part.slot
        await self._sent(slot)
        await part.buffers.pack(slot)
        self._sends[slot] = [
            self.proxy[part.neighbours[face]].halo.send(part.iteration, opposite(face), values)
            for face, values in part.buffers.outgoing(slot).items()
        ]
        if part.neighbours:
            await self._all_halos[slot]
        # No halo of the iteration after the next arrives before this block sends its faces of the next one.
        self._num_halos[slot], self._all_halos[slot] = 0, weft.Future()
        part.buffers.unpack(slot)
        part.update()
        if not part.neighbours:  # alone in the grid: let others have a turn
            await weft.sleep(0)


class ChannelBlock(Block):
    """A block with a channel to each neighbour: it posts its receives, sends its faces, waits, updates."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._channels = {
            face: weft.Channel(self, self.proxy[neighbour])
            for face, neighbour in self._part.neighbours.items()
        }

    def __getstate__(self) -> tuple[Setup, int, Array, dict[int, weft.Channel]]:
        """What weft.protect keeps between two runs, when nothing is on its way."""
        part = self._part
        return part.setup, part.iteration, part.field.points, self._channels

    def __setstate__(self, state: tuple[Setup, int, Array, dict[int, weft.Channel]]) -> None:
        setup, iteration, points, self._channels = state
        self._part = Part(setup, self.index)
        self._part.iteration, self._part.field.points = iteration, points
        self._sends = [[] for _ in range(NUM_SLOTS)]

    async def _iterate(self) -> None:
        slot, buffers = self._part.slot, self._part.buffers
        incoming = buffers.incoming(slot)
        receives = [channel.recv(into=incoming[face]) for face, channel in self._channels.items()]
        await self._sent(slot)
        await buffers.pack(slot)
        outgoing = buffers.outgoing(slot)
        self._sends[slot] = [channel.send(outgoing[face]) for face, channel in self._channels.items()]
        for receive in receives:
            await receive
        buffers.unpack(slot)
        self._part.update()
        if not self._channels:  # alone in the grid: let others have a turn
            await weft.sleep(0)


BLOCKS: dict[str, type[weft.Chare]] = {"messaging": MessagingBlock, "channel": ChannelBlock}
