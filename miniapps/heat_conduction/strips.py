"""The chares: strips of rows of the plate."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft
from kernels import make_kernels
from plate import Problem, temperatures


class StripBase(weft.Chare):
    """Rows of the plate, with a ghost row above and below. They are there twice, for the steps in turn."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.kernels = make_kernels(problem.memory)
        first, last = problem.rows(self.index)
        #: Of each neighbour the own row that it gets, and the ghost row.
        self.sides = {}
        if self.index > 0:
            self.sides[self.index - 1] = (1, 0)
        if last < problem.size:
            self.sides[self.index + 1] = (last - first, last - first + 1)

    async def make_points(self) -> list[Any]:
        first, last = self.problem.rows(self.index)
        begin = temperatures(self.problem.size, first - 1, last + 1, 0)
        return [await self.kernels.copy_of(begin) for _ in range(2)]

    async def largest_error(self, steps: int) -> float:
        """Against the exact temperatures."""
        exact = temperatures(self.problem.size, *self.problem.rows(self.index), steps)
        return float(np.abs(await self.own_rows() - exact).max())

    async def checksum(self) -> int:
        """The sum, modulo 2^64, of each value's bits times 2 i + 1, i being its place in the plate."""
        first, _ = self.problem.rows(self.index)
        values = (await self.own_rows()).reshape(-1)
        place = np.uint64(first * (self.problem.size + 2)) + np.arange(len(values), dtype=np.uint64)
        terms = values.view(np.uint64) * (np.uint64(2) * place + np.uint64(1))
        return int(terms.sum(dtype=np.uint64))

    async def own_rows(self) -> Any:
        return (await self.kernels.to_host(self.current()))[1:-1].copy()

    def current(self) -> Any:
        raise NotImplementedError


class Strip(StripBase):
    """A strip with channels to its neighbours."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.channels = [(weft.Channel(self, self.proxy[peer]), *rows) for peer, rows in self.sides.items()]

    async def prepare(self) -> None:
        self.now, self.next = await self.make_points()

    async def run(self) -> int:
        """The steps until a check has found the plate cold enough."""
        steps, hottest = 0, None
        while True:
            if steps % self.problem.check_every == 0:
                if hottest is not None and await hottest < self.problem.until:
                    return steps
                own = await self.kernels.find_hottest(self.now)
                hottest = self.allreduce(float(own[0]), weft.Reducer.max)
            await self.exchange()
            self.kernels.update(self.now, self.next)
            self.now, self.next = self.next, self.now
            steps += 1

    async def exchange(self) -> None:
        """Sends the outer rows, and sets the ghost rows."""
        operations: list[Any] = []
        for channel, mine, ghost in self.channels:
            into = self.kernels.on_stream(self.now[ghost : ghost + 1])
            sent = self.kernels.on_stream(self.now[mine : mine + 1])
            operations += [channel.recv(into=into), channel.send(sent)]
        for operation in operations:
            await operation

    def current(self) -> Any:
        return self.now


class QueuedStrip(StripBase):
    """A strip whose stream does everything: rows are sent and received by queued channels.

    The ghost rows are the landings. The CPU looks at the hottest point of the last check while the device
    does the steps to the next one.
    """

    use_graphs = False
    #: Of a step on a stream: two launches, two copies of large rows, a kernel.
    MOST_PIECES = 5

    async def prepare(self) -> None:
        """Connects, compiles the kernels and captures the graph, before any strip queues a step.

        All of it may wait for the device, and a stream that waits for another strip of this PE would then
        wait for ever.
        """
        from weft_bench.queued_work import QueuedIterations

        kernels = self.kernels
        self.points = await self.make_points()
        self.rows = [
            {peer: points[mine : mine + 1] for peer, (mine, _) in self.sides.items()}
            for points in self.points
        ]
        self.channels = {
            peer: weft.QueuedChannel(
                self, self.proxy[peer], [points[ghost : ghost + 1] for points in self.points]
            )
            for peer, (_, ghost) in self.sides.items()
        }
        connecting = [channel.connect() for channel in self.channels.values()]
        for connected in connecting:
            await connected
        kernels.update(self.points[0], self.points[1])  # the first step computes these points again
        await kernels.find_hottest(self.points[0])
        self.steps = QueuedIterations(kernels.stream, self.queue_step, self.MOST_PIECES)
        if self.use_graphs:
            self.steps.capture(kernels.capture)

    async def run(self) -> int:
        """As Strip.run()."""
        steps = 0
        while True:
            own = self.kernels.find_hottest(self.current())
            await self.steps.run(self.problem.check_every)
            steps += self.problem.check_every
            hottest = float((await own)[0])
            if await self.allreduce(hottest, weft.Reducer.max) < self.problem.until:
                await weft.stream_done(self.kernels.stream)
                return steps

    def queue_step(self, slot: int) -> None:
        rows = self.rows[slot]
        weft.QueuedChannel.exchange_all(
            self.channels.values(), [rows[peer] for peer in self.channels], self.kernels.stream
        )
        self.kernels.update(self.points[slot], self.points[1 - slot])

    def current(self) -> Any:
        return self.points[self.steps.slot]


class GraphStrip(QueuedStrip):
    """The same, with two steps that are captured once, and launched again and again."""

    use_graphs = True


STRIPS: dict[str, type[weft.Chare]] = {"channel": Strip, "queued": QueuedStrip, "graph": GraphStrip}
