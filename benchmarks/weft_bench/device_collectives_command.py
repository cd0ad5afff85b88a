"""``weft bench device-collectives``: its command line and method."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from weft_bench.arguments import names, number
from weft_bench.question import DEVICE_COLLECTIVES

_METHOD = """
Collectives of device arrays, one per PE, float32: a group of a team (docs/pgas-teams.md), beside NCCL in
PyTorch. The size of an operation is that of the whole: of the array of an all-reduce, of what an all-gather
makes, of what a reduce-scatter takes. The time is that of one operation of a row of them on one stream,
without a wait of the CPU between them, except after 200 and where the stream is full ("queued"), or of a
graph of 20 that is launched again and again ("graph"). PyTorch's all-reduce is in place, Weft's from one
array into another.

Every system is measured in RUNS fresh launches, in turn. The figure is the median. Each process stays on a
core of its own, and every size is preceded by a tenth of its iterations, untimed.
"""


def add_device_collectives(benches: Any, add_running_options: Any) -> None:
    """Add the bench to the subparsers of ``weft bench``."""
    parser = benches.add_parser(
        "device-collectives",
        help="collectives of device arrays, beside NCCL",
        description=f"Collectives of device arrays.\n{_METHOD}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--memory", choices=["emulated", "cuda"], default="cuda", help="kind of the arrays (cuda)"
    )
    parser.add_argument("--pes", type=number, default=2, metavar="N", help="PEs, each with a GPU (2)")
    parser.add_argument(
        "--operations",
        type=names(DEVICE_COLLECTIVES),
        default=list(DEVICE_COLLECTIVES),
        metavar="NAME,...",
        help=f"some of {', '.join(DEVICE_COLLECTIVES)} (all)",
    )
    parser.add_argument("--sizes", metavar="8,1K,4M", help="sizes in bytes")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw a log-log plot")
    add_running_options(parser)
    parser.set_defaults(function=_run)


def _run(arguments: argparse.Namespace) -> int:
    # Tables and progress bars cost time to import, which `weft run` should not pay.
    from weft_bench.device_collectives import run

    return run(arguments)
