"""The command line that both programs share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from grid import Pair, UserError, grown

DESCRIPTION = """\
Jacobi's iteration for Laplace's equation on a 2D grid of doubles with fixed boundary values. The grid is cut
into blocks with the shortest cuts between them. A block exchanges rows and columns with up to four neighbours
in every iteration."""

METHOD = """\
What is timed. The time between two barriers around the iterations after the warm-up. Reading the result
back, its checksum and the verification are not timed. The last line of the output is a JSON object with the
time as "value" in seconds, as those of the measuring programs."""


class Parser(argparse.ArgumentParser):
    """Errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def at_least(least: int) -> Callable[[str], int]:
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


def make_parser(program: str, usage: str, memories: Sequence[str], method: str = METHOD) -> Parser:
    """With the options of both programs."""
    parser = Parser(
        prog=program,
        usage=usage,
        description=DESCRIPTION,
        epilog=method,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--size",
        nargs="+",
        type=at_least(1),
        default=[512],
        metavar="N",
        help="points: N, or ROWS COLUMNS (512)",
    )
    parser.add_argument(
        "--scaling",
        choices=["strong", "weak"],
        default="strong",
        help="strong: --size is the whole grid; weak: it is the part of each PE, and the grid grows along "
        "rows and columns in turn (strong)",
    )
    parser.add_argument("--iterations", type=at_least(1), default=100, metavar="N", help="timed ones (100)")
    parser.add_argument(
        "--warmup", type=at_least(1), default=10, metavar="N", help="iterations before them (10)"
    )
    parser.add_argument(
        "--memory",
        choices=memories,
        default="host",
        help="where the points are: host; cuda, a GPU for each PE, with CuPy"
        + ("; emulated, the same without a GPU (host)" if "emulated" in memories else " (host)"),
    )
    parser.add_argument(
        "--kernel",
        choices=["auto", "numba", "numpy"],
        default="auto",
        help="on the CPU; auto: numba if it is installed (auto)",
    )
    parser.add_argument(
        "--pin", action="store_true", help="keep each process on the core of its number, modulo the cores"
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="every value must equal that of a serial NumPy run, to the last bit",
    )
    parser.add_argument(
        "--checksum",
        action="store_true",
        help="print a checksum of every bit of the result, which is the same for both programs",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the time as a record, a JSON object")
    return parser


def grid_size(options: argparse.Namespace, pes: int) -> Pair:
    """The points of the whole grid.

    Raises:
        UserError: --size is not one number or two.
    """
    if len(options.size) > 2:
        raise UserError("--size takes one number, or two: ROWS COLUMNS")
    rows, columns = options.size[0], options.size[-1]
    return grown((rows, columns), pes) if options.scaling == "weak" else (rows, columns)


def pin(pe: int) -> None:
    """Keeps this process on one core."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[pe % len(cores)]})
