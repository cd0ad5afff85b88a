"""Jacobi3D: a 7-point stencil over a chare array, its faces exchanged by messages, channels or streams.

    weft run -n 2 miniapps/jacobi3d/jacobi3d.py --odf 4 --verify

decomposition.py cuts the grid, field.py has the points of a block and kernels.py the computations on them
in each kind of memory, blocks.py and queued_blocks.py have the chares. jacobi3d.cpp is the same in C++ and
comes to the same values, to the last bit.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import weft
from blocks import BLOCKS, Setup, Timeline
from decomposition import Problem, UserError, divide, range_of
from kernels import make_kernels
from queued_blocks import QUEUED_BLOCKS
from report import ProgressBar, Result, describe, progress_is_visible, table, write_json
from stencil import Values, make_update
from verification import compare, solve_serially
from weft_bench.queued_work import ask_for_device_queues, why_not_queued

DESCRIPTION = """\
Jacobi's iteration for Laplace's equation on a 3D grid of doubles with fixed boundary values. The grid is
cut into PES x ODF blocks with the least area between them; a block is a chare that exchanges its faces with
up to six neighbours in every iteration."""

METHOD = """\
What is timed. overall: from PE 0's broadcast that starts the iterations after the warm-up until the last
block has answered, divided by the iterations; the blocks start and end together and nothing else
synchronises them. The time of a PE goes to: compute, when points of any of its blocks are being updated (on
a device, by the device's clock); pack, when none are, but faces are being copied out of or into blocks;
communication, all else: calls to send, scheduling, transport, copies between device and host memory, and
waiting that no other block's work filled. The three are means over PEs and add up to overall. Kernels of
CUDA graphs are not timed: with --model graph and --memory cuda, communication is nearly all of overall.

--model queued and graph with --memory cuda: a PE has at most 24 blocks, because each has a stream that needs
a hardware queue of its own. The program sets CUDA_DEVICE_MAX_CONNECTIONS to 32 for that, unless it is set."""


class Parser(argparse.ArgumentParser):
    """Errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def at_least(least: int):
    """The type of an argument that is a whole number of at least `least`."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text!r}")
        return number

    return parse


def parse_options(arguments: list[str]) -> argparse.Namespace:
    """Reads the command line. Raises UserError, whose text says what is wrong and what to write instead."""
    parser = Parser(
        prog="jacobi3d.py",
        usage="weft run -n PES jacobi3d.py [options]",
        description=DESCRIPTION,
        epilog=METHOD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    count, positive = at_least(0), at_least(1)
    parser.add_argument(
        "--size",
        nargs="+",
        type=positive,
        default=[96],
        metavar="N",
        help="points: N, or X Y Z (96)",
    )
    parser.add_argument("--odf", type=positive, default=4, metavar="N", help="blocks per PE (4)")
    parser.add_argument("--iterations", type=positive, default=100, metavar="N", help="timed ones (100)")
    parser.add_argument("--warmup", type=count, default=10, metavar="N", help="iterations before them (10)")
    parser.add_argument(
        "--model",
        choices=[*BLOCKS, *QUEUED_BLOCKS, "both"],
        default="both",
        help="messaging: faces are arguments of an entry method; channel: each pair of neighbours has a "
        "channel; both of these (both). For device memory: queued: kernels, sends and receives are queued "
        "on the block's stream, and the CPU waits for no face; graph: two such iterations are captured "
        "once, and launched again and again",
    )
    parser.add_argument(
        "--memory",
        choices=["host", "emulated", "cuda"],
        default="host",
        help="where the points are: host, emulated, or cuda, a GPU for each PE, with CuPy (host)",
    )
    parser.add_argument(
        "--staging",
        choices=["device", "host"],
        help="device: faces go from device memory to device memory, not staged; host: staged by the program, "
        "which copies them to host memory, sends that, and copies what arrives back (device)",
    )
    parser.add_argument(
        "--kernel",
        choices=["auto", "numba", "numpy"],
        default="auto",
        help="on the CPU; auto: numba if installed (auto)",
    )
    parser.add_argument(
        "--protect-every",
        type=count,
        default=0,
        metavar="N",
        help="with --model channel: keep the blocks in the memory of the job every N timed iterations: under "
        "weft run --on-loss restart the program survives the loss of processes, and times what comes after "
        "the last loss; 0: never (0)",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="every value must equal a serial reference's, to the last bit",
    )
    parser.add_argument(
        "--no-checksum",
        dest="checksum",
        action="store_false",
        help="do not read the result back from the blocks, which takes long for a large grid",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the times as records, one JSON object a line"
    )
    options = parser.parse_args(arguments)
    if len(options.size) not in (1, 3):
        raise UserError("--size takes one number, or three: X Y Z")
    options.size = tuple(options.size * 3 if len(options.size) == 1 else options.size)
    if options.staging is not None and options.memory == "host":
        raise UserError("--staging is about device memory: give --memory emulated or cuda with it")
    if options.protect_every > 0 and options.model != "channel":
        raise UserError("--protect-every needs --model channel")
    options.host_staging = options.staging == "host"
    if options.model in QUEUED_BLOCKS:
        expect_queues(options)
    return options


def expect_queues(options: argparse.Namespace) -> None:
    """Raises UserError if streams cannot order the exchange of faces."""
    if options.host_staging:
        raise UserError(f"--model {options.model} needs streams of a device: give it without --staging host")
    why_not = why_not_queued(options.model, options.memory, options.odf)
    if why_not:
        raise UserError(why_not)


def expect_usable(options: argparse.Namespace) -> None:
    """Raises UserError, one sentence, if this program or this machine cannot do that."""
    make_update(options.kernel)
    try:
        make_kernels(options.memory, options.kernel)
    except weft.Error as error:
        raise UserError(f"--memory {options.memory}: {error}") from None


async def gather(blocks: Any, problem: Problem) -> Values:
    """The whole grid, from all blocks."""
    grid = np.empty(problem.points)
    parts = await blocks.values.call()
    for index, values in zip(np.ndindex(problem.blocks), parts, strict=True):
        part = range_of(problem, index)
        grid[tuple(slice(f, f + n) for f, n in zip(part.first, part.size, strict=True))] = values
    return grid


async def iterate(options: argparse.Namespace, blocks: Any, done: int) -> list[Timeline]:
    """The timed iterations of which `done` are done. Protects the blocks, if that is wanted."""
    timelines: list[Timeline] = []
    while done < options.iterations:
        count = min(options.protect_every or options.iterations, options.iterations - done)
        timelines += await blocks.run.call(count)
        done += count
        if options.protect_every > 0 and done < options.iterations:
            await weft.protect({"blocks": blocks, "done": done})
    return timelines


async def solve(options: argparse.Namespace, problem: Problem, model: str, expected: Values | None) -> Result:
    """One run of one model."""
    progress = None
    saved = await weft.recovered()
    if saved is not None:
        blocks, first = saved["blocks"], saved["done"]
    else:
        total = options.warmup + options.iterations
        report_every = 0
        if progress_is_visible() and options.protect_every == 0:
            progress = weft.Singleton(ProgressBar, 0, args=(model, total))
            report_every = max(1, total // 100)
        setup = Setup(problem, options.memory, options.host_staging, options.kernel, progress, report_every)
        blocks, first = weft.Array((BLOCKS | QUEUED_BLOCKS)[model], problem.blocks, args=(setup,)), 0
        await blocks.run.call(0)  # what has to be done before any stream waits
        await blocks.run.call(options.warmup)
    start = time.perf_counter()
    timelines = await iterate(options, blocks, first)
    elapsed = time.perf_counter() - start
    if progress is not None:
        await progress.clear.call()

    result = Result.of(model, elapsed, timelines, options.iterations - first)
    if options.checksum:
        result.checksum = sum(await blocks.checksum.call()) % 2**64
    if expected is not None:
        comparison = compare(await gather(blocks, problem), expected)
        result.verdict, result.correct = str(comparison), comparison.equal
    return result


async def solve_all(options: argparse.Namespace) -> bool:
    """Whether all results are right, as far as that was asked for."""
    problem = Problem(options.size, divide(options.size, weft.num_pes() * options.odf))
    expect_usable(options)  # better found here
    print(describe(options, problem))
    expected = None
    if options.verify:
        print("verify: computing the serial reference")
        expected = solve_serially(options.size, options.warmup + options.iterations)
    models = list(BLOCKS) if options.model == "both" else [options.model]
    results = [await solve(options, problem, model, expected) for model in models]
    print(table(results))
    if options.json is not None:
        write_json(options.json, options, results)
    return all(result.correct for result in results)


async def main() -> None:
    """On PE 0 alone, so that a mistake is reported once."""
    code = 0
    try:
        if not await solve_all(parse_options(sys.argv[1:])):
            code = 1
    except UserError as error:
        print(f"jacobi3d.py: {error} (see jacobi3d.py --help)", file=sys.stderr)
        code = 2
    weft.exit(code)


if __name__ == "__main__":
    ask_for_device_queues(sys.argv[1:])
    weft.run(main)
