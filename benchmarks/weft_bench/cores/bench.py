"""What ``weft bench cores`` does with its parsed arguments."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import sys
import tempfile
from pathlib import Path

from rich.markup import escape

from weft_bench.cores.machine import default_pes, distance_label, distances_ns, number_of_cores
from weft_bench.cores.points import points_of
from weft_bench.cores.programs import measured
from weft_bench.cores.report import NOTES, by_pes, problem_lines, table, write_pages
from weft_bench.cores.running import measure
from weft_bench.errors import BenchError
from weft_bench.programs import Programs
from weft_bench.provenance import provenance
from weft_bench.question import MIN_RUNS, parse_sizes
from weft_bench.report import make_console
from weft_bench.running import expect_runs, launches_of


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, write files; the exit status: 0, or 1 when a case failed or nothing was measured."""
    console = make_console()
    try:
        expect_runs(arguments)
        pes = arguments.pes or default_pes()
        if min(pes) < 2:
            raise BenchError("--pes: 2 PEs or more")
        points = points_of(arguments.operations, parse_sizes(arguments.sizes) if arguments.sizes else None)
        programs = Programs(arguments.programs)
        distance = distance_label(distances_ns(programs, max(pes)))
        where = provenance()
        about = [where.host, distance]
        console.print(escape(f"{number_of_cores()} cores; {distance}"), highlight=False)
        with (
            tempfile.TemporaryDirectory(prefix="weft-bench-") as folder,
            launches_of(arguments, console) as launches,
        ):
            launches.begin_part()
            outcome = measure(
                measured(arguments.model, arguments.against, programs, Path(folder)),
                pes,
                points,
                runs=arguments.runs,
                budget_s=arguments.seconds,
                provenance=dataclasses.replace(where, host=", ".join(about)),
                launches=launches,
            )
        for number, records in by_pes(outcome.records).items():
            console.print(table(records, outcome.cores[number]))
        if outcome.records:
            console.print(escape("; ".join([*about, where.date, where.git])), style="dim", highlight=False)
            console.print(NOTES, style="dim", highlight=False)
        for text in problem_lines(outcome):
            console.print(escape(text), style="yellow", highlight=False)
        if arguments.runs < MIN_RUNS:
            console.print(
                f"{arguments.runs} runs are too few to rely on: take {MIN_RUNS} or more", style="yellow"
            )
        if arguments.output and outcome.records:
            can_draw = importlib.util.find_spec("matplotlib") is not None
            for page in write_pages(arguments.output, outcome, about, can_draw):
                console.print(escape(f"written: {page}"), style="dim", highlight=False)
            if not can_draw:
                console.print("the plots need matplotlib: pip install matplotlib", style="yellow")
    except BenchError as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    return launches.exit_status(1 if outcome.failed or not outcome.records else 0)
