"""``weft bench heat3d``: its arguments, and what it does with them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft_bench.arguments import number, numbers

METHOD = """
Heat conduction in 3D (miniapps/heat3d), the problem of the Kokkos tutorials: blocks of a body exchange their
faces in every step. One-sided (pgas): a block puts its faces into its neighbours' segments and then stores
the step's number there. Two-sided (channel): channels with receives that are posted one step ahead. Kernels
and buffers of packed faces are the same.

A window is the time of two steps, and slides by one step: the buffers of two steps are used in turn. A PE
takes the time when its last block ends a step. Every size and exchange runs in RUNS fresh jobs. The two
exchanges of a size follow one another, size after size in turns. Figures of a run are over the windows of all
PEs after the warm-up: the median, and the distances between the quantiles of 25 and 75 % and of 5 and 95 %.
Records hold the medians over the runs. Each PE is kept on a core of its own.

The time of a cache line between the cores is measured before and after each run in host memory. A run during
which it changes by more than a factor of 1.6 is made again, up to 4 times.

The picture has a row per size, with the histogram of each exchange over all windows of all runs, on the same
axes.
"""


def add_heat3d(benches: Any, add_running_options: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the bench to the subparsers of ``weft bench``."""
    parser = benches.add_parser(
        "heat3d",
        help="heat conduction in 3D: one-sided beside two-sided, histograms of two steps",
        description=METHOD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--memory", choices=["host", "emulated", "cuda"], default="host", help="where the points are (host)"
    )
    parser.add_argument("--pes", type=number, default=2, metavar="N", help="PEs (2)")
    parser.add_argument("--odf", type=number, default=1, metavar="N", help="overdecomposition factor (1)")
    parser.add_argument(
        "--sizes", type=numbers, metavar="8,32,128", help="points along each dimension (8,16,32,64,128)"
    )
    parser.add_argument("--steps", type=number, metavar="N", help="timed ones (by size: 10000 to 200)")
    parser.add_argument("--warmup", type=number, default=100, metavar="N", help="steps before (100)")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw the histograms side by side")
    parser.add_argument(
        "--windows",
        type=Path,
        metavar="FILE",
        help="write each case's histogram and runs, a JSON object a line",
    )
    add_running_options(parser)
    parser.set_defaults(function=_run)


def _run(arguments: argparse.Namespace) -> int:
    # Tables and progress bars cost time to import, which `weft run` should not pay.
    from rich.markup import escape

    from weft_bench import heat3d, heat3d_report
    from weft_bench.errors import BenchError
    from weft_bench.gpus import expect_memory
    from weft_bench.programs import Programs
    from weft_bench.provenance import provenance
    from weft_bench.report import make_console
    from weft_bench.running import expect_runs, launches_of
    from weft_bench.steadiness import core_distance_ns

    console = make_console()
    try:
        expect_memory(arguments.memory)
        expect_runs(arguments)
        programs = Programs(arguments.programs)
        programs.need("heat3d")  # what is missing is better told before an hour of runs
        wanted = list(
            heat3d.cases(
                memory=arguments.memory,
                pes=arguments.pes,
                odf=arguments.odf,
                sizes=arguments.sizes or heat3d.DEFAULT_SIZES,
                steps=arguments.steps,
                warmup=arguments.warmup,
            )
        )

        def distance() -> float | None:
            return core_distance_ns(programs) if arguments.memory == "host" else None

        about = provenance()
        with launches_of(arguments, console) as launches:
            launches.begin_part()
            launches.teller.expect(len(wanted) * arguments.runs)
            outcome = heat3d.measure(wanted, arguments.runs, programs, about, launches, distance)
        if outcome.records:
            console.print(heat3d_report.table(outcome))
        for text in (*heat3d_report.comparison(outcome), *heat3d_report.distances(outcome)):
            console.print(escape(text), highlight=False)
        for text in outcome.stopped:
            console.print(escape(text), style="yellow", highlight=False)
        for text in heat3d_report.failures(outcome):
            console.print(text, style="red", highlight=False)
        if arguments.windows:
            lines = [json.dumps(case) for case in heat3d.summary(outcome, about)]
            arguments.windows.parent.mkdir(parents=True, exist_ok=True)
            arguments.windows.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        if arguments.plot:
            heat3d_report.write_plot(arguments.plot, outcome)
    except BenchError as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    return launches.exit_status(1 if outcome.failed or not outcome.records else 0)
