"""``weft bench``: the command line of the harness."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from weft_bench.arguments import minutes, names, number, numbers
from weft_bench.cores.command import add_parser as add_cores
from weft_bench.device_collectives_command import add_device_collectives
from weft_bench.gpus import PLACEMENTS
from weft_bench.heat3d_command import add_heat3d
from weft_bench.jacobi3d import LANGUAGES, MODELS, SCALINGS, WAYS
from weft_bench.pgas_arguments import add_parsers as add_pgas_parsers
from weft_bench.question import MIN_RUNS
from weft_bench.system_weft import MODELS as WEFT_MODELS
from weft_bench.systems import REFERENCES

COMMON_METHOD = """
Every system is measured in RUNS fresh launches, in the order A, B, C, A, B, C, ..., so that other load on
the machine affects all systems alike. The figure is the median; the JSON has the minimum and maximum too. In
each launch both processes stay on a core of their own (PE number modulo cores), and every size is preceded
by a tenth of its iterations, or four of at least as many, as warm-up, untimed. The number of iterations is
chosen so that a size takes about 0.15 s, on devices 0.06 s. There is a barrier before the warm-up of each
size in MPI and raw UCX; in the others the first message has that role; none lies between warm-up and
timing, or inside the timed part. Buffers are reused and were written beforehand.

The distance between two cores of a virtual machine may change, which changes the time of small messages by a
factor of four. The time of a cache line between the cores is therefore measured before and after each run,
and the turns continue until every system has RUNS runs at one distance. Only these count. Runs on device
memory are not checked in this way.

After each turn the records so far are written to the file of --json. Ctrl-C, SIGTERM and the end of the
--minutes end a bench with the runs made so far. The report says which systems have fewer runs or none.
Without a terminal, each launch and its seconds are a line on standard error.

raw UCX is ucx_perftest. In host memory it runs with every setting that matters between processes of a
host: UCX's defaults; the settings of Weft's machine (endpoint error handling, which excludes cma); shared
memory alone (UCX_TLS=self,posix); and cma from 8 KiB up, read by the receiver (UCX_RNDV_SCHEME=get_zcopy) or
written by the sender (put_zcopy). The best of them is the reference for a size, and the report names it. The
report also says where Weft's own settings are the slower ones. On GPUs raw UCX runs with the defaults and
with Weft's settings. openmpi and mpich are programs in C.

charm++ is a program in C++, if the build was told of a Charm++ (benchmarks/README.md). Its entry methods
take an array that they read in the message ("array"), a std::vector of their own ("vector"), or a buffer that
is sent in place and lands in one of the receiver's ("nocopy"). So do Weft's. There the first is a view of a
value, and the series has no further name.

Device memory (--memory cuda, or emulated, which tries all of this out without a GPU and measures nothing).
PE p has its buffers on GPU p (a pair) or both PEs on GPU 0 (the same). The way that messages take is the
path of a record: through UCX; staged, through host memory (WEFT_STAGING=host); channels also peer-mapped,
by a copy into the receiver's memory (they go through UCX with WEFT_PEER_MEMORY=off); entry methods as
tagged, metadata first and the payload as a tagged message beside it, or active, one active message with
both. No stream is named, since nothing runs on the device. Beside Weft run ucx_perftest -m cuda; a plain
cuMemcpyPeerAsync by one process, waited for by polling an event; NCCL's send and receive in PyTorch, queued
on the stream without waiting between messages; and mpi4py with CuPy on an Open MPI that was built with
CUDA, else on one that is lent the UCX of libucx-cu13 ("on libucx").

Latency "from kernels": a kernel on each GPU does all round trips, writes into the memory of the other and
raises a flag there; "packets from kernels": data that takes its flag along, up to 64 KiB. The same by one
process without Weft is peer-copy; "flags of kernels" is that without data, the least that the card takes.

Latency "queued" and in a "graph": each launch of a peer sends and receives, by exchange().
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
bytes. (OSU osu_bw; ucx_perftest's tag_bw keeps 64 in flight without acknowledgements.)

Host memory is measured twice, in a table and a picture each. The path of a record ends with the buffers.
"one buffer": all sends of a window use one buffer, and so do its receives, as in OSU; data up to its size
stays in cache. "distinct buffers", from 64 KiB up: at either end every message of a window has a buffer of
its own. All buffers of a process are at least twice the last-level cache, so that data comes from memory and
goes there, and at most 512 MiB if that is more: a window of 64 MiB messages uses 8. Raw UCX is raw_ucx.cpp
there, because ucx_perftest has one buffer only. GPU memory is measured with one buffer.
""",
    "rate": """
As bandwidth, for small messages: windows of 64 sends with one acknowledgement, given in million messages per
second, one direction. (OSU osu_mbw_mr with one pair.)
""",
}
_JACOBI3D_METHOD = """
Jacobi's iteration on a 3D grid (miniapps/jacobi3d): blocks of points, ODF of them on each PE, exchange
their faces with their neighbours over channels or as arguments of entry methods. Every case, which is a
language, a model, a way of the faces, a number of PEs and an ODF, runs in RUNS fresh jobs, case after case in
turns; the figures are medians.

Weak scaling gives each PE --size points along each dimension (so that the grid grows along x, y and z in
turn), strong scaling has that many in the whole grid. By default 96 and 128 in host memory, 768 and 1536 in
cuda memory, 32 and 48 in emulated memory, whose times mean nothing. Efficiency is the time on one PE over the
time on n, over n times it for strong scaling.

An iteration is timed from PE 0's broadcast that starts the iterations after the warm-up until the last block
has answered, divided by the iterations. compute and pack are the time in which a kernel of the PE's blocks
ran, on a GPU by its own clock; communication is the rest. With --staging device, faces of GPU memory are not
staged: they are peer-mapped or go through UCX (records and cases call this "direct"). With --staging host
("staged"), the program copies them to page-locked host memory on its stream, sends that, and copies what
arrives back. "staged / not staged" is the ratio of the two communication times.

Models queued and graph are for device memory that is not staged. The streams of the blocks send and receive
the faces, and no CPU waits for one. Kernels of CUDA graphs are not timed: their time counts as communication.
Beside the channels: --memory cuda --staging device --odf 1,2,4,8 --models channel,queued,graph
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
    add_pgas_parsers(benches, add_running_options)
    _add_jacobi3d(benches)
    add_heat3d(benches, add_running_options)
    add_cores(benches, add_running_options)
    add_device_collectives(benches, add_running_options)


def _add_jacobi3d(benches: Any) -> None:
    parser = benches.add_parser(
        "jacobi3d",
        help="the mini-app Jacobi3D: scaling, models, faces staged or not, where the time goes",
        description=_JACOBI3D_METHOD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--memory", choices=["host", "emulated", "cuda"], default="host", help="where the points are (host)"
    )
    parser.add_argument("--pes", type=numbers, metavar="1,2,4", help="numbers of PEs (as many as fit here)")
    parser.add_argument(
        "--odf", type=numbers, default=[1, 2, 4], metavar="1,2,4", help="overdecomposition factors (1,2,4)"
    )
    for option, choices in (
        ("--scaling", SCALINGS),
        ("--languages", LANGUAGES),
        ("--models", MODELS),
        ("--staging", tuple(WAYS)),
    ):
        parser.add_argument(
            option,
            type=names(choices),
            default=list(choices),
            metavar="NAME,...",
            help=f"{' and '.join(choices)} (all)",
        )
    parser.add_argument("--size", type=number, metavar="N", help="points along each dimension; see above")
    parser.add_argument("--iterations", type=number, metavar="N", help="timed ones (100, in cuda memory 50)")
    parser.add_argument("--warmup", type=number, default=10, metavar="N", help="iterations before (10)")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw where the time went")
    add_running_options(parser)
    parser.set_defaults(function=_run_jacobi3d)


def _run_jacobi3d(arguments: argparse.Namespace) -> int:
    from weft_bench.command import run_jacobi3d

    return run_jacobi3d(arguments)


def _run(arguments: argparse.Namespace) -> int:
    # Tables and progress bars cost time to import, which `weft run` should not pay.
    from weft_bench.command import run_bench

    return run_bench(arguments)


def _add_bench(benches: Any, name: str) -> None:
    parser = benches.add_parser(
        name,
        help=_SUMMARIES[name],
        description=f"{_SUMMARIES[name].capitalize()}.\n{METHODS[name]}{COMMON_METHOD}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--memory", choices=["host", "emulated", "cuda"], default="host", help="kind of the buffers (host)"
    )
    parser.add_argument(
        "--model",
        type=names(WEFT_MODELS),
        default=list(WEFT_MODELS),
        metavar="NAME,...",
        help=f"ways through Weft: {', '.join(WEFT_MODELS)} (all). With mpi alone, the MPI libraries are "
        "the systems beside it",
    )
    parser.add_argument(
        "--paths",
        type=lambda text: text.split(","),
        default=[],
        metavar="NAME,...",
        help="of the ways of device memory through Weft, those with these paths (all), as queued,graph",
    )
    parser.add_argument(
        "--against",
        default="all",
        metavar="all|none|NAME,...",
        help=f"systems to measure beside Weft: {', '.join(REFERENCES)} (all that are installed)",
    )
    parser.add_argument(
        "--placement",
        choices=list(PLACEMENTS),
        help="which GPUs --memory cuda uses: a pair of them, the same one for both PEs, or both in turn "
        "(a pair if there are two)",
    )
    parser.add_argument("--sizes", metavar="8,1K,4M", help="message sizes in bytes")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw a log-log plot")
    add_running_options(parser)
    parser.set_defaults(function=_run)


def add_running_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of everything that launches programs."""
    parser.add_argument("--runs", type=int, default=MIN_RUNS, help=f"launches of each system ({MIN_RUNS})")
    parser.add_argument(
        "--minutes",
        type=minutes,
        metavar="M",
        help="begin no launch after that; what was taken by then makes the figures (no limit)",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write one JSON object per figure and line, anew after each turn",
    )
    parser.add_argument("--programs", type=Path, metavar="DIR", help="folder of the measuring programs")
    parser.add_argument(
        "--charm4py-source",
        type=Path,
        metavar="DIR",
        help="a charm4py on UCX or MPI (benchmarks/README.md), to be measured beside the installed one",
    )
