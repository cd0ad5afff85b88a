"""``weft bench pgas`` and ``weft bench memspeed``: their command lines and methods."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from weft_bench.arguments import names
from weft_bench.gpus import PLACEMENTS

#: Each is a bench of records, behind "pgas_".
QUESTIONS = ("latency", "flood", "flood_both", "fetch_add")

_METHOD = """
Every system is measured in RUNS fresh launches, in turn. The figure is the median. Both processes stay on a
core of their own, and every size is preceded by a tenth of its iterations, untimed. A size takes about
0.15 s, on devices 0.06 s. Runs count only while the time of a cache line between the two cores stays the same
(weft bench latency --help).

The operations, as UPC++'s GPU microbenchmark defines them: copies between segments. A put goes from a segment
of PE 0 to one of PE 1, a get the other way; a local copy has both segments on PE 0. "host-device" is source
and target. Host segments are "mapped", which is what a program gets on one host, or reached "through UCX"
(WEFT_PGAS_MAPPING=off), as on other hosts. "put value" and "get value" are the calls for one value, of 8
bytes, which lies in no segment.

Beside them: raw UCX (raw_ucx_rma.cpp) by its defaults and by Weft's settings, on memory of the program that
is registered, or on memory that UCX has allocated ("memory of UCX"), which other processes of the host may
map. A put of UCX is over behind a flush of its endpoint. MPI's RMA is MPI_Put or MPI_Get and MPI_Win_flush in
an MPI_Win_allocate window, in C (Weft's MPI, "openmpi", "mpich") and through mpi4py. The other libraries are
asked on host memory only. Windows of Weft's MPI are asked between devices too.

With device memory "staged" is Weft with WEFT_PGAS_MAPPING=off and WEFT_STAGING=host: through host memory of
both PEs. Raw UCX has registered memory then. "peer-copy" is a copy between the devices by one process that
sees both, as the driver offers it.
"""
_PGAS_METHOD = """
pgas_latency: the time of one operation that is awaited before the next begins; not half of a round trip.
pgas_flood: windows of 100 operations in flight. The next window begins when all are over. PE 0 operates, and
PE 1 waits. pgas_flood_both: both PEs do so at once; the bytes of both count, until both are over.
pgas_fetch_add: a fetch-add of 64 bits that is awaited: on a word that the other PE leaves alone ("alone"), on
a word to which both add at once ("contended"), and on lines that are in the other PE's cache, each add
waiting for the one before ("owned"). Beside them, "cache-line" is the time of a cache line between the cores.

All operations of a size use one source and one target ("one buffer"), which stay in the cache. With
--distinct the floods are also measured with buffers of twice the last-level cache in turn, from 64 KiB up.
"""
_MEMSPEED_METHOD = """
Large copies, one after the other, in bytes per second: local and remote, host and device. The host buffers of
a size have together twice the last-level cache at least, so memory is read and written behind the caches.
"""


def add_parsers(benches: Any, add_running_options: Any) -> None:
    """Add both benches to the subparsers of ``weft bench``."""
    for name, summary, method in (
        ("pgas", "one-sided operations: latency, flood, fetch-add", _PGAS_METHOD),
        ("memspeed", "large copies: local and remote, host and device", _MEMSPEED_METHOD),
    ):
        _add(benches, add_running_options, name, summary, method + _METHOD)


def _add(benches: Any, add_running_options: Any, name: str, summary: str, method: str) -> None:
    parser = benches.add_parser(
        name,
        help=summary,
        description=f"{summary.capitalize()}.\n{method}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--memory", choices=["host", "emulated", "cuda"], default="host", help="what device memory is (host)"
    )
    parser.add_argument(
        "--against",
        default="all",
        metavar="all|none|NAME,...",
        help="ucx, openmpi, mpich, mpi4py-openmpi, mpi4py-mpich, peer-copy (all that are there)",
    )
    parser.add_argument(
        "--placement",
        choices=list(PLACEMENTS),
        help="which GPUs --memory cuda uses: a pair, the same one for both PEs, or both in turn",
    )
    parser.add_argument("--sizes", metavar="8,1K,4M", help="sizes in bytes, except those of pgas_fetch_add")
    if name == "pgas":
        parser.add_argument(
            "--questions",
            type=names(QUESTIONS),
            default=list(QUESTIONS),
            metavar="NAME,...",
            help=f"some of {', '.join(QUESTIONS)} (all)",
        )
        parser.add_argument("--distinct", action="store_true", help="floods behind the caches as well")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw log-log plots")
    add_running_options(parser)
    parser.set_defaults(function=_run, distinct=False)


def _run(arguments: argparse.Namespace) -> int:
    # Tables and progress bars cost time to import, which `weft run` should not pay.
    from weft_bench.pgas import run

    return run(arguments)
