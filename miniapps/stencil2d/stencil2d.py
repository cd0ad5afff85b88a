"""Stencil2D: a 5-point stencil over a chare array, its rows and columns exchanged over channels.

    weft run -n 2 miniapps/stencil2d/stencil2d.py --odf 4 --verify

grid.py cuts the grid, field.py has a block's points, kernels.py the computations on them, which
stencil2d_mpi4py.py shares. queued_blocks.py has the blocks whose streams do everything.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from typing import Any

import numpy as np

import weft
from field import NUM_SLOTS, Field
from grid import Problem, UserError, divide, neighbours, range_of
from kernels import Values
from options import METHOD, at_least, grid_size, make_parser, pin
from queued_blocks import QUEUED_BLOCKS, Setup
from report import Result, describe, report, write_json
from verification import examine
from weft_bench.provenance import provenance
from weft_bench.queued_work import ask_for_device_queues, why_not_queued
from weft_kernels import make_kernels

PROGRAM = "stencil2d.py"
BARRIERS = f"""{METHOD} The first barrier is the end of the warm-up in all
blocks; PE 0 then starts the iterations with a broadcast. The second one is the answer of the last block. With
--lb-every the sync points lie between them."""


class Block(weft.Chare):
    """A block of the grid. It posts its receives an iteration ahead, sends its halo, waits, and updates."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._slot = 0
        self._prepare(None)

    async def run(self, iterations: int) -> None:
        field, ports = self._field, self._ports
        await self._kernels_done()  # halos must not arrive before fill() is done
        receives = self._post_receives(self._slot)
        sends: list[weft.Operation[None]] = []
        for left in range(iterations - 1, -1, -1):
            slot = self._slot
            field.pack(slot)
            before, sends = sends, [channel.send(outgoing) for channel, outgoing, _ in ports[slot]]
            for receive in receives:
                await receive
            if left:
                receives = self._post_receives(1 - slot)
            field.unpack(slot)
            for send in before:  # the update overwrites what they send
                await send
            field.update(slot)
            self._slot = 1 - slot
        for send in sends:
            await send
        await self._kernels_done()

    async def values(self) -> Values:
        """Without ghost points."""
        points = self._field.points[self._slot]
        host = points if self._kernels.stream is None else await points.to_host(self._kernels.stream)
        return host[1:-1, 1:-1].copy()

    async def _kernels_done(self) -> None:
        if self._kernels.stream is not None:
            await weft.stream_done(self._kernels.stream)

    def _post_receives(self, slot: int) -> list[weft.Operation[Any]]:
        return [channel.recv(into=incoming) for channel, _, incoming in self._ports[slot]]

    def _prepare(self, points: Any) -> None:
        """Makes all that is not its state: kernels, buffers, channels."""
        problem = self.setup.problem
        around = neighbours(problem, self.index)
        self._kernels = make_kernels(self.setup.memory, self.setup.kernel)
        self._field = Field(self._kernels, range_of(problem, self.index), around, points, self._slot)
        channels = {side: weft.Channel(self, self.proxy[peer]) for side, peer in around.items()}
        #: By slot: of each neighbour the channel, what is sent, and where its halo arrives.
        self._ports = [
            [
                (
                    channel,
                    self._after_kernels(self._field.outgoing[slot][side]),
                    self._field.incoming[slot][side],
                )
                for side, channel in channels.items()
            ]
            for slot in range(NUM_SLOTS)
        ]

    def _after_kernels(self, array: Any) -> Any:
        """The same memory, whose sends wait for the kernels that are queued before them."""
        return array if self._kernels.stream is None else array.on(self._kernels.stream)


class MovableBlock(Block):
    """A block that load balancing may move at sync points, between two calls of run()."""

    def balance(self, synced: weft.Future) -> None:
        self.synced = synced
        self.at_sync()

    def resume_from_sync(self) -> None:
        self.contribute(1, weft.Reducer.sum, self.synced)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "setup": self.setup,
            "synced": self.synced,
            "_slot": self._slot,
            "_points": self._field.points[self._slot],
        }

    def migrated(self) -> None:
        self._prepare(self.__dict__.pop("_points"))


class Pinner(weft.Chare):
    """A member of each PE."""

    def pin(self) -> None:
        pin(weft.my_pe())


async def iterate(blocks: Any, iterations: int, lb_every: int) -> None:
    """All blocks have done `iterations` when this returns. lb_every = 0: no sync points."""
    while iterations > 0:
        number = min(iterations, lb_every or iterations)
        await blocks.run.call(number)
        iterations -= number
        if lb_every and iterations:
            synced = weft.Future()
            blocks.balance(synced)
            await synced


async def gather(blocks: Any, problem: Problem) -> Values:
    """The whole grid, from all blocks."""
    grid = np.empty(problem.points)
    for index, values in zip(np.ndindex(problem.blocks), await blocks.values.call(), strict=True):
        part = range_of(problem, index)
        grid[tuple(slice(f, f + n) for f, n in zip(part.first, part.size, strict=True))] = values
    return grid


async def solve(options: Namespace) -> bool:
    """Whether the result is right, as far as that was asked for."""
    pes = weft.num_pes()
    points = grid_size(options, pes)
    problem = Problem(points, divide(points, pes * options.odf))
    make_kernels(options.memory, options.kernel)  # what is missing is better reported here
    print(describe("Weft", options, problem, pes, options.odf))
    here = provenance()
    if options.pin:
        await weft.Group(Pinner).pin.call()
    kind = QUEUED_BLOCKS.get(options.model, MovableBlock if options.lb_every else Block)
    blocks = weft.Array(kind, problem.blocks, args=(Setup(problem, options.memory, options.kernel),))
    if options.model in QUEUED_BLOCKS:
        await blocks.prepare.call()
    await iterate(blocks, options.warmup, options.lb_every)
    start = time.perf_counter()
    await iterate(blocks, options.iterations, options.lb_every)
    seconds = time.perf_counter() - start
    grid = await gather(blocks, problem) if options.verify or options.checksum else None
    found, digest = examine(grid, options)
    result = Result(problem, "weft", options.model, pes, options.odf, seconds, found, digest)
    print(report(options, result))
    if options.json is not None:
        write_json(options, result, here)
    return not found


def parse_options(arguments: list[str]) -> Namespace:
    """Reads the command line. Raises UserError, whose text says what is wrong and what to write instead."""
    usage = f"weft run -n PES {PROGRAM} [options]"
    parser = make_parser(PROGRAM, usage, ("host", "emulated", "cuda"), BARRIERS)
    parser.add_argument("--odf", type=at_least(1), default=1, metavar="N", help="blocks per PE (1)")
    parser.add_argument(
        "--model",
        choices=["channel", *QUEUED_BLOCKS],
        default="channel",
        help="channel: the CPU waits for each halo; for device memory: queued: kernels, sends and receives "
        "are queued on the block's stream; graph: two such iterations are captured once, and launched again "
        "and again (channel)",
    )
    parser.add_argument(
        "--lb-every",
        type=at_least(0),
        default=0,
        metavar="N",
        help="load balancing may move blocks after every N iterations; 0: never (0)",
    )
    options = parser.parse_args(arguments)
    if options.model in QUEUED_BLOCKS:
        why_not = why_not_queued(options.model, options.memory, options.odf)
        if options.lb_every:
            why_not = (
                f"--model {options.model}: blocks with queued channels do not move; leave out --lb-every"
            )
        if why_not:
            raise UserError(why_not)
    return options


async def main() -> None:
    """On PE 0 alone, so that a mistake is reported once."""
    code = 0
    try:
        if not await solve(parse_options(sys.argv[1:])):
            code = 1
    except (UserError, weft.Error) as error:
        print(f"{PROGRAM}: {error} (see {PROGRAM} --help)", file=sys.stderr)
        code = 2
    weft.exit(code)


if __name__ == "__main__":
    ask_for_device_queues(sys.argv[1:])
    weft.run(main)
