"""What the benches of ``weft bench`` do with their parsed arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from weft.bench.errors import BenchError
from weft.bench.figures import judge, questions
from weft.bench.plot import write_plot
from weft.bench.programs import Programs
from weft.bench.provenance import provenance
from weft.bench.question import DEFAULT_SIZES, MIN_RUNS, Question, parse_sizes
from weft.bench.record import Record, write_records
from weft.bench.report import make_console, show, show_problems, verdict_table
from weft.bench.schedule import Outcome, ask
from weft.bench.steadiness import core_distance_ns
from weft.bench.system import System
from weft.bench.system_weft import weft_systems
from weft.bench.systems import reference_systems


def run_bench(arguments: argparse.Namespace) -> int:
    """Measure, print, write files; the exit status: 0, or 1 when a system failed or nothing was there."""
    console = make_console()
    try:
        sizes = parse_sizes(arguments.sizes) if arguments.sizes else DEFAULT_SIZES[arguments.bench]
        if arguments.runs < 1:
            raise BenchError(f"--runs {arguments.runs}: at least one run is needed")
        question = Question(arguments.bench, sizes, arguments.memory)
        programs = Programs(arguments.programs)
        references = reference_systems(arguments.against, programs, arguments.charm4py_source)
        systems: list[System] = [*weft_systems(programs), *references]
        outcome = _ask_with_progress(question, systems, arguments.runs, programs, console)
        show(outcome, console)
        if arguments.runs < MIN_RUNS:
            console.print(
                f"{arguments.runs} runs are too few to rely on: take {MIN_RUNS} or more", style="yellow"
            )
        if arguments.json:
            write_records(arguments.json, outcome.records)
        if arguments.plot:
            write_plot(arguments.plot, outcome.records)
    except BenchError as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    return 1 if outcome.failed or not outcome.records else 0


def run_figures(arguments: argparse.Namespace) -> int:
    """Measure what `figures.GOALS` need, print the verdicts; the exit status: 0 when all goals are met."""
    console = make_console()
    records: list[Record] = []
    failed = False
    try:
        programs = Programs(arguments.programs)
        for question, systems in questions(programs, arguments.charm4py_source):
            outcome = _ask_with_progress(question, systems, arguments.runs, programs, console)
            if len(systems) > 1:
                show(outcome, console)
            else:
                show_problems(outcome, console)
            records += outcome.records
            failed = failed or bool(outcome.failed)
        verdicts = judge(records)
        console.print(verdict_table(verdicts))
        if arguments.json:
            write_records(arguments.json, records)
    except BenchError as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    return 0 if not failed and all(verdict.met for verdict in verdicts) else 1


def make_progress(console: Console) -> Progress:
    """A bar with the name of what is running, counted in launches."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=console, transient=True)


def _ask_with_progress(
    question: Question, systems: Sequence[System], runs: int, programs: Programs, console: Console
) -> Outcome:
    present = [system for system in systems if system.absent(question) is None]
    with make_progress(console) as progress:
        task = progress.add_task("", total=len(present) * runs)

        def step(label: str) -> None:
            started = progress.tasks[task].description != ""
            progress.update(task, advance=1 if started else 0, description=label)

        return ask(question, systems, runs, provenance(), step, lambda: core_distance_ns(programs))
