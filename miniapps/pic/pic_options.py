"""The command line and the output of the three Python programs. Nothing here needs Weft."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from pic_problem import DISTRIBUTIONS, Problem, UserError, check, cut
from pic_verification import Verdict

DESCRIPTION = """\
The Parallel Research Kernel PIC: charged particles move through a periodic grid of fixed charges. The
distribution of the particles makes the work of the blocks unequal, and moves with the particles."""

METHOD = """\
What is timed: --steps steps, after --warmup steps, from the start on PE 0 until all blocks
have ended. compute is the time of the kernels on all PEs, divided by the number of PEs: with a perfect
balance and no other costs the run would take as long. balancing is the time from the last block that reaches
a sync point until the last PE goes on, summed over all sync points; it needs all PEs on one host.

The last line is a JSON object with the time as "value" in seconds, as those of the measuring programs."""


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


def make_parser(program: str, usage: str) -> Parser:
    """With the options that all programs have."""
    parser = Parser(
        prog=program,
        usage=usage,
        description=DESCRIPTION,
        epilog=METHOD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    positive, count = at_least(1), at_least(0)
    add = parser.add_argument
    add("--size", type=at_least(2), default=2000, metavar="L", help="cells along each dimension, even (2000)")
    add("--particles", type=positive, default=2_000_000, metavar="N", help="(2000000)")
    add("--steps", type=count, default=100, metavar="N", help="timed steps (100)")
    add("--warmup", type=positive, default=1, metavar="N", help="steps before them (1)")
    add("--k", type=count, default=0, metavar="K", help="particles move 2 K + 1 columns in a step (0)")
    add("--m", type=int, default=1, metavar="M", help="particles move M rows in a step (1)")
    add("--distribution", choices=DISTRIBUTIONS, default="geometric", help="over the columns (geometric)")
    add(
        "--ratio",
        type=float,
        default=0.997,
        metavar="R",
        help="geometric: of a column to the one before (0.997)",
    )
    add(
        "--linear",
        nargs=2,
        type=float,
        default=[1.0, 1.0],
        metavar=("ALPHA", "BETA"),
        help="linear: BETA - ALPHA x, with x from 0 to 1 over the columns (1 1)",
    )
    add(
        "--patch",
        nargs=4,
        type=count,
        metavar=("LEFT", "RIGHT", "BOTTOM", "TOP"),
        help="patch: the columns and rows of its edges (the lower left quarter of the grid)",
    )
    add("--seed", type=count, default=1, metavar="N", help="of the rows in which particles start (1)")
    add(
        "--split",
        choices=["x", "y", "2d"],
        default="x",
        help="blocks lie along x, across the skew of the distributions; along y; or in both (x)",
    )
    add(
        "--kernel", choices=["auto", "numba", "numpy"], default="auto", help="auto: numba if installed (auto)"
    )
    add("--pin", action="store_true", help="bind each process to a processor: that with its number")
    add("--verify", action="store_true", help="check the place of every particle, their number and their ids")
    return parser


def pin(number: int) -> None:
    """Binds this process, which has that number in the job, to one of the processors that it may use."""
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) > 1:
        os.sched_setaffinity(0, {processors[number % len(processors)]})


def problem_of(options: argparse.Namespace, num_blocks: int) -> Problem:
    """Raises UserError if there is no such problem."""
    half = max(options.size // 2 - 1, 0)
    blocks_x, blocks_y = cut(num_blocks, options.split)
    problem = Problem(
        size=options.size,
        particles=options.particles,
        k=options.k,
        m=options.m,
        distribution=options.distribution,
        ratio=options.ratio,
        alpha=options.linear[0],
        beta=options.linear[1],
        patch=tuple(options.patch or (0, half, 0, half)),
        seed=options.seed,
        blocks_x=blocks_x,
        blocks_y=blocks_y,
    )
    check(problem)
    return problem


@dataclass
class Result:
    """Of one run. Times are in seconds."""

    overall_s: float
    compute_s: float
    balancing_s: float
    num_syncs: int
    checksum: int
    verdict: Verdict | None


def describe(problem: Problem, language: str, num_pes: int, odf: int, steps: int, warmup: int) -> str:
    """One line before it starts."""
    return (
        f"PIC in {language}: {problem.particles} particles, {problem.distribution}, on {problem.size} x "
        f"{problem.size} cells in {problem.blocks_x} x {problem.blocks_y} blocks, {num_pes} "
        f"PE{'' if num_pes == 1 else 's'}, ODF {odf}; {steps} steps after {warmup}"
    )


def report(problem: Problem, result: Result, num_pes: int, odf: int, steps: int) -> str:
    """The last lines."""
    lines = [
        f"time {result.overall_s:.4f} s, compute {result.compute_s:.4f} s, {result.num_syncs} sync points, "
        f"balancing {result.balancing_s:.4f} s, checksum {result.checksum:016x}"
    ]
    if result.verdict is not None:
        lines.append(f"verify: {result.verdict.text}")
    fields = {
        "size_bytes": problem.size_bytes,
        "metric": "time_s",
        "value": result.overall_s,
        "compute_s": result.compute_s,
        "balancing_s": result.balancing_s,
        "syncs": result.num_syncs,
        "pes": num_pes,
        "odf": odf,
        "steps": steps,
        "checksum": f"{result.checksum:016x}",
        "verified": None if result.verdict is None else result.verdict.correct,
    }
    return "\n".join([*lines, json.dumps(fields)])


def balancing_s(syncs: Sequence[Sequence[tuple[float, float, int]]]) -> float:
    """See METHOD.

    Args:
        syncs: for each block and sync point when it got there, when it went on, and then on which PE.
    """
    total = 0.0
    for step in zip(*syncs, strict=True):
        resumed: dict[int, float] = {}
        for _, end, pe in step:
            resumed[pe] = min(end, resumed.get(pe, end))
        total += max(resumed.values()) - max(begin for begin, _, _ in step)
    return total
