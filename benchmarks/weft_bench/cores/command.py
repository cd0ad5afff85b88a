"""``weft bench cores``: its arguments, and what it does with them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft_bench.arguments import above_0, names, numbers
from weft_bench.cores.points import OPERATIONS
from weft_bench.cores.programs import MODELS, REFERENCES

FIGURES = "figures.jsonl"
_QUICK_SIZES = (8, 32768)
_QUICK_SECONDS = 0.005

METHOD = f"""
What programs do, on 2, 4, 8 and 16 PEs (--pes): through MPI in C ("mpi"), chares in C++ and Python ("chares",
"chares-python"), and PGAS teams in C++ ("teams"). One C program is compiled by `weft mpicc` and, where they
are installed, by the mpicc of Open MPI and of MPICH.

windows         PE r of the first half sends windows of 64 messages to PE r + n/2, which answers each window:
                n/2 pairs at once. Of teams: 64 puts that are awaited together. Messages per second of all
                pairs; fewer PEs give the rates of fewer pairs
all_to_one      every PE sends 1000 messages to PE 0, then a barrier. MPI receives from MPI_ANY_SOURCE; chares
                call PE 0's, teams a function of PE 0. Messages per second that PE 0 receives
solver_step     8 KiB to the PE before and to the PE after, then an all-reduce of 8 bytes
barrier, broadcast, reduce, all_reduce, all_gather, all_to_all, reduce_scatter, scan
                one after the other, without a barrier between them. Sizes are of one PE's block, and
                reductions add doubles. In broadcast, reduce and scan some PEs may go ahead; therefore a
                barrier follows 64 rounds, or 4 MiB. Chares and teams have no reduce_scatter and no scan.
                all_to_all is made of calls between chares, and of puts and a barrier in teams

A launch measures all points. The number of rounds of a point is chosen by runs before it, so that the timed
run takes about SECONDS. A time is that of the slowest PE, from a barrier on. PE number p stays on core p,
modulo cores. Every program on every number of PEs runs in RUNS fresh launches, in turns; the figures are
medians.

Before each launch, as many processes as it has PEs count in a loop for 0.1 s. A launch has too few cores if
they are fewer than the PEs, or if the slowest process counts less than 0.8 of the fastest, or all together
less than 0.8 of what so many would count alone. Figures taken so are marked with *, and the `host` of their
records says why. Two hardware threads of one core are such a case. The time of a cache line is measured
between each pair of cores.

--output DIR gets the records in {FIGURES}, and for each number of PEs a page, pes-N.md, with one table and,
with matplotlib, one plot.
"""


def add_parser(benches: Any, add_running_options: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the bench to the subparsers of ``weft bench``."""
    parser = benches.add_parser(
        "cores",
        help="message rates, a solver's step and collectives on many PEs, beside Open MPI and MPICH",
        description=METHOD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--pes", type=numbers, metavar="2,4,8", help="numbers of PEs (2, 4, 8 and 16, up to the cores)"
    )
    parser.add_argument(
        "--operations",
        type=names(tuple(OPERATIONS)),
        default=list(OPERATIONS),
        metavar="NAME,...",
        help="some of those above (all)",
    )
    parser.add_argument("--sizes", metavar="8,1K,1M", help="sizes in bytes of windows and of collectives")
    for option, choices, what in (
        ("--model", MODELS, "ways through Weft"),
        ("--against", REFERENCES, "other MPI libraries"),
    ):
        parser.add_argument(
            option,
            type=lambda text, choices=choices: [] if text == "none" else names(choices)(text),
            default=list(choices),
            metavar="all|none|NAME,...",
            help=f"{what}: {', '.join(choices)} (all)",
        )
    parser.add_argument(
        "--seconds", type=above_0, metavar="S", help="about the time of a point in a launch (0.05)"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder of the records and pages")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"try it out: one run, {_QUICK_SECONDS} s a point, 8 B and 32 KiB",
    )
    add_running_options(parser)
    parser.set_defaults(function=_run)


def _run(arguments: argparse.Namespace) -> int:
    # Tables and progress bars cost time to import, which `weft run` should not pay.
    from weft_bench.cores.bench import run

    if arguments.quick:
        arguments.runs = 1
        arguments.sizes = arguments.sizes or ",".join(map(str, _QUICK_SIZES))
        arguments.seconds = arguments.seconds or _QUICK_SECONDS
    if arguments.output and not arguments.json:
        arguments.json = arguments.output / FIGURES
    arguments.seconds = arguments.seconds or 0.05
    return run(arguments)
