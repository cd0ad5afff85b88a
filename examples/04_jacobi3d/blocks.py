"""The chares: what both kinds of block share, and how each exchanges its halos."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import weft
from decomposition import Problem, Triple, neighbours, opposite, range_of
from face_buffers import NUM_SLOTS, FaceBuffers
from field import Field
from kernels import Interval, make_kernels
from stencil import Values, face_shape


@dataclass(frozen=True)
class Setup:
    """What every block is made with.

    `progress` is the proxy to tell every `report_every` iterations how far block (0, 0, 0) is; 0 is never.
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
    """What a block is in both models: its part of the grid, its neighbours, the buffers of its faces."""

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
        self.iteration += 1
        if self._report_every and self.iteration % self._report_every == 0:
            self.setup.progress.advance(self.iteration)

    async def finish(self) -> Timeline:
        """Waits for the device."""
        await self.field.done()
        return Timeline(weft.my_pe(), self._kernels.take_intervals())


class MessagingBlock(weft.Chare):
    """A block whose faces travel as arguments of an entry method."""

    def __init__(self, setup: Setup) -> None:
        self._part = Part(setup, self.index)
        self._arrived: list[dict[int, Values]] = [{} for _ in range(NUM_SLOTS)]
        self._complete = [weft.Future() for _ in range(NUM_SLOTS)]

    async def run(self, iterations: int) -> Timeline:
        part = self._part
        for _ in range(iterations):
            slot = part.slot
            await self._send_halos(slot)
            if part.neighbours:
                await self._complete[slot]
            self._unpack(slot)
            part.update()
            if not part.neighbours:  # alone in the grid: let others have a turn
                await weft.sleep(0)
        return await part.finish()

    def halo(self, iteration: int, face: int, values: Values) -> None:
        """The ghost points of one side for `iteration`, from the neighbour there.

        Messages overtake one another and neighbours run ahead, by one iteration at most, since they need this
        block's halo for the one after.
        """
        slot = iteration % NUM_SLOTS
        self._arrived[slot][face] = values
        if len(self._arrived[slot]) == len(self._part.neighbours):
            self._complete[slot].set()

    async def values(self) -> Values:
        return await self._part.field.values()

    async def checksum(self) -> int:
        return await self._part.field.checksum(self._part.setup.problem.points)

    async def _send_halos(self, slot: int) -> None:
        # Arrays of their own, which belong to the runtime once they are sent.
        part = self._part
        if part.setup.memory == "host":
            halos = {face: np.empty(face_shape(part.field.size, face)) for face in part.neighbours}
            part.field.pack(halos)
        else:
            await part.buffers.pack(slot)
            halos = {face: values.copy() for face, values in part.buffers.outgoing(slot).items()}
        for face, values in halos.items():
            self.proxy[part.neighbours[face]].halo(part.iteration, opposite(face), values)

    def _unpack(self, slot: int) -> None:
        arrived, self._arrived[slot] = self._arrived[slot], {}
        self._complete[slot] = weft.Future()
        if self._part.setup.memory == "host":
            self._part.field.unpack(arrived)
            return
        for face, incoming in self._part.buffers.incoming(slot).items():
            incoming[...] = arrived[face]
        self._part.buffers.unpack(slot)


class ChannelBlock(weft.Chare):
    """A block with a channel to each neighbour: it posts its receives, sends its faces, waits, updates."""

    def __init__(self, setup: Setup) -> None:
        self._part = Part(setup, self.index)
        self._channels = {
            face: weft.Channel(self, self.proxy[neighbour])
            for face, neighbour in self._part.neighbours.items()
        }
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

    async def _sent(self, slot: int) -> None:
        """Waits until the slot's buffers are free again."""
        sends, self._sends[slot] = self._sends[slot], []
        for send in sends:
            await send


BLOCKS: dict[str, type[weft.Chare]] = {"messaging": MessagingBlock, "channel": ChannelBlock}
