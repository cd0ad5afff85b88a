"""``weft bench``: the command line of the harness."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from weft.bench.question import MIN_RUNS
from weft.bench.systems import REFERENCES

_COMMON_METHOD = """
Every system is measured in RUNS fresh launches, in the order A, B, C, A, B, C, ..., so that what else the
machine does falls on all alike; the figure is the median, and the minimum and maximum go into the JSON. In
each launch both processes stay on a core of their own (PE number modulo cores), and every size is preceded
by a tenth of its iterations as warm-up, untimed. The number of iterations is chosen so that a size takes
about 0.15 s. There is a barrier before the warm-up of each size in mpi4py and ucx_perftest; in the others
the first message has that role; none lies between warm-up and timing, or inside the timed part. Buffers are
reused and were written beforehand.

Cores of a virtual machine may be near one another at one time and far at another, which changes small
messages by a factor of four: the time of a cache line between them is measured before and after each run,
and the turns go on until every system has its RUNS at one distance; those count.

raw UCX is ucx_perftest, once as UCX is by default and once with the settings that Weft's machine uses; the
better of the two is the reference for a size.
"""

METHODS = {
    "latency": """
Ping-pong: PE 0 sends a message, PE 1 answers with one of the same size as soon as it has it. One way is
half of the round trip, averaged over the iterations. The clock of PE 0 runs from its first send after the
warm-up to the arrival of the last answer. (OSU osu_latency.)
""",
    "bandwidth": """
A window of 64 sends is started back to back, the 64 receives are posted as one window, and when all have
arrived one empty acknowledgement goes back; the next window starts when it is there. Bandwidth is the bytes
of all windows over the time from the first send after the warm-up to the last acknowledgement, 1 GB = 10^9
bytes. All sends of a window use one buffer, and so do its receives. (OSU osu_bw; ucx_perftest's tag_bw
keeps 64 in flight without acknowledgements.)
""",
    "rate": """
As bandwidth, for small messages: windows of 64 sends with one acknowledgement, told in million messages per
second, one direction. (OSU osu_mbw_mr with one pair.)
""",
}
_FIGURES_METHOD = """
Latency at 8 bytes and bandwidth at 4 MiB of every system, as below, then the figures without a rival. Local
entry method: messages per second that one chare sends to another on the same PE, in windows of 64. Array:
seconds from the call that creates 100,000 elements on 2 PEs, over a broadcast to them, to the result of a
reduction over them, on PE 0. Memory: growth of the process's heap divided by the chares created, less the
size of the chare's class. Python chares: seconds from the call that creates 10,000 chares on one PE until
every constructor has run. 4 PEs on 2 cores: one way of a ping-pong of entry methods between two PEs while
the others idle, not pinned; the slowest pair's median.
"""
_SUMMARIES = {
    "latency": "one-way time of a message between two PEs",
    "bandwidth": "bytes per second from one PE to another",
    "rate": "small messages per second from one PE to another",
}


def add_parser(subparsers: Any) -> None:
    """Add ``bench`` to the subparsers of ``weft``; `function` becomes one of the parsed arguments."""
    bench = subparsers.add_parser(
        "bench", help="measure messaging, beside other systems", description=__doc__
    )
    benches = bench.add_subparsers(dest="bench", required=True, metavar="BENCH")
    for name in METHODS:
        _add_bench(benches, name)
    _add_figures(benches)


def _add_figures(benches: Any) -> None:
    parser = benches.add_parser(
        "figures",
        help="every figure that Weft is held to, beside its limit",
        description=_FIGURES_METHOD
        + METHODS["latency"]
        + METHODS["bandwidth"]
        + METHODS["rate"]
        + _COMMON_METHOD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_running(parser)
    parser.set_defaults(function=_run_figures)


def _run_figures(arguments: argparse.Namespace) -> int:
    from weft.bench.command import run_figures

    return run_figures(arguments)


def _run(arguments: argparse.Namespace) -> int:
    # Tables and progress bars cost time to import, which `weft run` should not pay.
    from weft.bench.command import run_bench

    return run_bench(arguments)


def _add_bench(benches: Any, name: str) -> None:
    parser = benches.add_parser(
        name,
        help=_SUMMARIES[name],
        description=f"{_SUMMARIES[name].capitalize()}.\n{METHODS[name]}{_COMMON_METHOD}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--memory", choices=["host", "emulated", "cuda"], default="host", help="kind of the buffers (host)"
    )
    parser.add_argument(
        "--against",
        default="all",
        metavar="all|none|NAME,...",
        help=f"systems to measure beside Weft: {', '.join(REFERENCES)} (all that are installed)",
    )
    parser.add_argument("--sizes", metavar="8,1K,4M", help="message sizes in bytes")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw a log-log plot")
    _add_running(parser)
    parser.set_defaults(function=_run)


def _add_running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=MIN_RUNS, help=f"launches of each system ({MIN_RUNS})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write one JSON object per figure and line")
    parser.add_argument("--programs", type=Path, metavar="DIR", help="folder of the measuring programs")
    parser.add_argument(
        "--charm4py-source",
        type=Path,
        metavar="DIR",
        help="where charm4py was built in place on MPI, to be measured beside the installed one",
    )
