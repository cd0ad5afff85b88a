"""The commands ``benchmarks/figures.py`` and ``benchmarks/published.py``."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from goals.figures import GOALS, Goal, Verdict, goals_beside, judge, judge_files, narrowed, questions
from goals.gpu_figures import gpu_questions, judge_gpu
from goals.pgas_figures import judge_pgas
from goals.report import published_table, verdict_table
from weft_bench.cli import COMMON_METHOD, METHODS, add_running_options
from weft_bench.errors import BenchError
from weft_bench.gpus import expect_memory, gpu_names
from weft_bench.programs import Programs
from weft_bench.record import Record, read_records
from weft_bench.report import make_console, show, show_problems
from weft_bench.running import ask_question, expect_runs, launches_of

_FIGURES_METHOD = """
Every figure that Weft is held to, beside its limit.

Latency at 8 bytes and from 64 KiB to 4 MiB, and bandwidth from 64 KiB to 64 MiB with one buffer and with
distinct buffers, of every system, as below. The reference for bandwidth is the best of raw UCX with any
setting, Open MPI and MPICH. Some limits are others where the cores are far: where a cache line takes 140 ns
or more. Allreduce: the mean time of an allreduce of one double over all PEs, each kept on a core, one after
the other. A reduction: a broadcast to 100,000 elements that exist and a sum over them, on 2 PEs. A PE that
computes: its receive of 16 MiB is posted; it computes for a second without entering the runtime. The time
runs from the send to the completion at the sender, or until the receiver sees all bytes in place, whichever
is earlier.

Then the figures without a rival. Local entry method: messages per second that one chare sends to another on
the same PE, in windows of 64. Array: seconds from the call that creates 100,000 elements on 2 PEs, over a
broadcast to them, to the result of a reduction over them, on PE 0. Memory: growth of the process's heap
divided by the chares created, less the size of the chare's class. Python chares: seconds from the call that
creates 10,000 chares on one PE until every constructor has run. 4 PEs on 2 cores: one way of a ping-pong of
entry methods between two PEs while the others idle, not pinned; the slowest pair's median.

With --memory cuda: latency at 8 bytes and bandwidth at 64 MiB between two GPUs, of Weft and raw UCX. How
much staging costs, and how Jacobi3D scales, is judged from files alone: --from with what weft bench latency,
bandwidth and jacobi3d wrote. The ratio of not staged to staged is taken at the size where it is best.

With --pgas: the figures of global memory, judged by files of weft bench pgas, and with --memory cuda also of
weft bench memspeed. The half size of a flood is where half of its peak is reached.
"""
_PUBLISHED_METHOD = """
The published ratios of GPU communication that is not staged to the same staged through host memory. Beside
them are Weft's, from records of weft bench latency, bandwidth and jacobi3d with --memory cuda.
"""


def figures(words: Sequence[str] | None = None) -> int:
    """The command line of ``benchmarks/figures.py``."""
    parser = argparse.ArgumentParser(
        prog="figures.py",
        description=_FIGURES_METHOD + "".join(METHODS.values()) + COMMON_METHOD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--memory",
        choices=["host", "emulated", "cuda"],
        default="host",
        help="of messages of this memory (host)",
    )
    parser.add_argument(
        "--from",
        dest="files",
        type=Path,
        nargs="+",
        metavar="RECORDS.json",
        help="measure nothing: judge what --json wrote, each figure by the first file that has it",
    )
    parser.add_argument(
        "--pgas",
        action="store_true",
        help="the figures of global memory, by --from with what weft bench pgas --json wrote",
    )
    parser.add_argument(
        "--beside",
        metavar="SYSTEM",
        help="only the figures in host memory that compare with this system, as charm++",
    )
    add_running_options(parser)
    return run_figures(parser.parse_args(words))


def published(words: Sequence[str] | None = None) -> int:
    """The command line of ``benchmarks/published.py``."""
    parser = argparse.ArgumentParser(
        prog="published.py",
        description=_PUBLISHED_METHOD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", type=Path, nargs="*", metavar="RECORDS.json", help="what --json wrote")
    return run_published(parser.parse_args(words))


def run_figures(arguments: argparse.Namespace) -> int:
    """Measure what the goals need, or take it from files, and print the verdicts.

    The exit status is 0 when all goals are met.
    """
    console = make_console()
    on_device = arguments.memory != "host"
    status = 0
    try:
        goals = _wanted_goals(arguments)
        judge_one: Callable[[Sequence[Record]], list[Verdict]]
        judge_one = functools.partial(judge_gpu, memory=arguments.memory)
        if arguments.pgas:
            if not arguments.files:
                raise BenchError("--pgas needs --from FILE: measure with weft bench pgas --json FILE")
            judge_one = functools.partial(judge_pgas, memory=arguments.memory)
        elif not on_device:
            judge_one = functools.partial(judge, goals=goals)
        if arguments.files:
            files = [list(read_records(file)) for file in arguments.files]
        else:
            records, status = _measure_figures(arguments, goals, console)
            files = [records]
        verdicts = judge_files(files, judge_one)
        console.print(verdict_table(verdicts))
    except (BenchError, OSError) as error:
        print(f"figures: {error}", file=sys.stderr)
        return 1
    return status or (0 if all(verdict.met for verdict in verdicts) else 1)


def _wanted_goals(arguments: argparse.Namespace) -> Sequence[Goal]:
    """In host memory: those that --beside leaves."""
    if arguments.beside is None:
        return GOALS
    goals = goals_beside(arguments.beside)
    if not goals or arguments.memory != "host":
        raise BenchError(f"--beside {arguments.beside}: no figure in {arguments.memory} memory has it")
    return goals


def _measure_figures(
    arguments: argparse.Namespace, goals: Sequence[Goal], console: Console
) -> tuple[list[Record], int]:
    """What the goals ask for, and the exit status if a system failed or a signal came, else 0."""
    expect_runs(arguments)
    expect_memory(arguments.memory)
    if arguments.memory == "cuda" and len(gpu_names()) < 2:
        raise BenchError("--memory cuda: these figures are between two GPUs, and two are not here")
    programs = Programs(arguments.programs)
    if arguments.memory == "host":
        asked = questions(programs, arguments.charm4py_source)
        if arguments.beside is not None:
            asked = narrowed(asked, goals)
    else:
        asked = gpu_questions(programs, arguments.memory)
    records: list[Record] = []
    failed = False
    with launches_of(arguments, console) as launches:
        for number, (question, systems) in enumerate(asked):
            launches.begin_part(len(asked) - number)
            outcome = ask_question(question, systems, arguments.runs, programs, launches)
            if len(systems) > 1:
                show(outcome, console)
            else:
                show_problems(outcome, console)
            records += outcome.records
            failed = failed or bool(outcome.failed)
    return records, launches.exit_status(1 if failed else 0)


def run_published(arguments: argparse.Namespace) -> int:
    """Print the published figures beside those in the records of `arguments.files`."""
    console = make_console()
    try:
        records = [record for file in arguments.files for record in read_records(file)]
    except (BenchError, OSError) as error:
        print(f"published: {error}", file=sys.stderr)
        return 1
    console.print(published_table(records))
    return 0
