"""The chares: what both kinds of block share, and how each exchanges its halos."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import weft
from decomposition import Problem, Triple, neighbours, opposite, range_of
from field import HostField, Values, make_kernel


@dataclass
class Times:
    """Where a block's time went, in seconds."""

    compute: float = 0.0
    pack: float = 0.0


class Part:
    """What a block is in both models: its part of the grid, its neighbours, its times.

    `progress` is the proxy to tell every `report_every` iterations how far this block is; 0 is never.
    """

    def __init__(
        self, problem: Problem, index: Triple, kernel: str, progress: Any = None, report_every: int = 0
    ) -> None:
        self.problem = problem
        self.neighbours = neighbours(problem, index)
        self.field = HostField(range_of(problem, index), make_kernel(kernel))
        self.iteration = 0
        self.times = Times()
        self._progress = progress
        self._report_every = report_every if index == (0, 0, 0) else 0

    def start_clock(self) -> None:
        self.times = Times()

    def update(self) -> None:
        start = time.perf_counter()
        self.field.update()
        self.times.compute += time.perf_counter() - start
        self.iteration += 1
        if self._report_every and self.iteration % self._report_every == 0:
            self._progress.advance(self.iteration)

    def pack(self, face: int, halo: Values) -> None:
        start = time.perf_counter()
        self.field.pack(face, halo)
        self.times.pack += time.perf_counter() - start

    def unpack(self, face: int, halo: Values) -> None:
        start = time.perf_counter()
        self.field.unpack(face, halo)
        self.times.pack += time.perf_counter() - start


class MessagingBlock(weft.Chare):
    """A block whose faces travel as arguments of an entry method.

    Nothing waits: the last halo that arrives starts the next update.
    """

    def __init__(self, problem: Problem, *part_arguments: Any) -> None:
        self._part = Part(problem, self.index, *part_arguments)
        self._last_iteration = 0
        self._num_halos = 0  # that arrived for this iteration
        self._early: dict[int, Values] = {}  # that are for the next one
        self._finished: weft.Future | None = None

    async def run(self, iterations: int) -> Times:
        self._part.start_clock()
        self._last_iteration += iterations
        if iterations > 0:
            self._finished = weft.Future()
            self._send_halos()
            self.advance()
            await self._finished
        return self._part.times

    def halo(self, iteration: int, face: int, halo: Values) -> None:
        """The ghost points of one side for `iteration`, from the neighbour there.

        Messages overtake one another and neighbours run ahead, by one iteration at most, since they need this
        block's halo for the one after.
        """
        if iteration != self._part.iteration:
            self._early[face] = halo
        else:
            self._accept(face, halo)
            self.advance()

    def advance(self) -> None:
        """Updates as long as all halos are there."""
        part = self._part
        while part.iteration < self._last_iteration and self._num_halos == len(part.neighbours):
            part.update()
            self._num_halos = 0
            early, self._early = self._early, {}
            for face, halo in early.items():
                self._accept(face, halo)
            if part.iteration == self._last_iteration:
                self._finished.set()
                return
            self._send_halos()
            if not part.neighbours:  # alone in the grid: let others have a turn
                self.proxy[self.index].advance()
                return

    def values(self) -> Values:
        return self._part.field.values()

    def checksum(self) -> int:
        return self._part.field.checksum(self._part.problem.points)

    def _accept(self, face: int, halo: Values) -> None:
        self._part.unpack(face, halo)
        self._num_halos += 1

    def _send_halos(self) -> None:
        for face, neighbour in self._part.neighbours.items():
            halo = self._part.field.make_halo(face)  # belongs to the runtime once it is sent
            self._part.pack(face, halo)
            self.proxy[neighbour].halo(self._part.iteration, opposite(face), halo)


class ChannelBlock(weft.Chare):
    """A block with a channel to each neighbour: it posts its receives, sends its faces, waits, updates.

    Its buffers are made once.
    """

    def __init__(self, problem: Problem, *part_arguments: Any) -> None:
        self._part = Part(problem, self.index, *part_arguments)
        make_halo = self._part.field.make_halo
        self._sides = [
            (face, weft.Channel(self, self.proxy[neighbour]), make_halo(face), make_halo(face))
            for face, neighbour in self._part.neighbours.items()
        ]

    async def run(self, iterations: int) -> Times:
        self._part.start_clock()
        for _ in range(iterations):
            await self._iterate()
        return self._part.times

    def values(self) -> Values:
        return self._part.field.values()

    def checksum(self) -> int:
        return self._part.field.checksum(self._part.problem.points)

    async def _iterate(self) -> None:
        receives = [channel.recv(into=incoming) for _, channel, _, incoming in self._sides]
        sends = []
        for face, channel, outgoing, _ in self._sides:
            self._part.pack(face, outgoing)
            sends.append(channel.send(outgoing))
        for (face, _, _, incoming), receive in zip(self._sides, receives, strict=True):
            await receive
            self._part.unpack(face, incoming)
        self._part.update()
        for send in sends:  # the outgoing arrays are free again; by now they mostly are
            await send
        if not self._sides:  # alone in the grid: let others have a turn
            await weft.sleep(0)


BLOCKS: dict[str, type[weft.Chare]] = {"messaging": MessagingBlock, "channel": ChannelBlock}
