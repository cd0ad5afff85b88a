"""What the benches of ``weft bench`` do with their parsed arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from weft.bench import jacobi3d, jacobi3d_report
from weft.bench.errors import BenchError
from weft.bench.figures import GOALS, judge, questions
from weft.bench.gpu_figures import GPU_GOALS, gpu_questions
from weft.bench.gpus import expect_memory, gpu_names, placements
from weft.bench.plot import write_plot
from weft.bench.programs import Programs
from weft.bench.provenance import provenance
from weft.bench.question import MIN_RUNS, Question, default_sizes, parse_sizes
from weft.bench.record import Record, read_records, write_records
from weft.bench.report import make_console, published_table, show, show_problems, verdict_table
from weft.bench.schedule import Outcome, ask
from weft.bench.steadiness import core_distance_ns
from weft.bench.system import System
from weft.bench.system_weft import weft_systems
from weft.bench.systems import reference_systems


def run_bench(arguments: argparse.Namespace) -> int:
    """Measure, print, write files; the exit status: 0, or 1 when a system failed or nothing was there."""
    console = make_console()
    try:
        memory = arguments.memory
        expect_memory(memory)
        sizes = parse_sizes(arguments.sizes) if arguments.sizes else default_sizes(arguments.bench, memory)
        if arguments.runs < 1:
            raise BenchError(f"--runs {arguments.runs}: at least one run is needed")
        programs = Programs(arguments.programs)
        references = reference_systems(arguments.against, programs, arguments.charm4py_source, memory)
        systems: list[System] = [*weft_systems(programs, memory), *references]
        outcome = Outcome()
        for devices in placements(memory, arguments.placement):
            question = Question(arguments.bench, sizes, memory, devices=devices)
            outcome.add(_ask_with_progress(question, systems, arguments.runs, programs, console))
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
    """Measure what the goals need, print the verdicts; the exit status: 0 when all goals are met."""
    console = make_console()
    records: list[Record] = []
    failed = False
    try:
        programs = Programs(arguments.programs)
        goals, asked = GOALS, questions(programs, arguments.charm4py_source)
        if arguments.memory == "cuda":
            expect_memory("cuda")
            if len(gpu_names()) < 2:
                raise BenchError("--memory cuda: these figures are between two GPUs, and two are not here")
            goals, asked = GPU_GOALS, gpu_questions(programs)
        for question, systems in asked:
            outcome = _ask_with_progress(question, systems, arguments.runs, programs, console)
            if len(systems) > 1:
                show(outcome, console)
            else:
                show_problems(outcome, console)
            records += outcome.records
            failed = failed or bool(outcome.failed)
        verdicts = judge(records, goals)
        console.print(verdict_table(verdicts))
        if arguments.json:
            write_records(arguments.json, records)
    except BenchError as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    return 0 if not failed and all(verdict.met for verdict in verdicts) else 1


def run_jacobi3d(arguments: argparse.Namespace) -> int:
    """Measure, print, write files; the exit status: 0, or 1 when a case failed or nothing was measured."""
    console = make_console()
    try:
        expect_memory(arguments.memory)
        if arguments.runs < 1:
            raise BenchError(f"--runs {arguments.runs}: at least one run is needed")
        programs = Programs(arguments.programs)
        wanted = list(
            jacobi3d.cases(
                memory=arguments.memory,
                pes=arguments.pes or jacobi3d.default_pes(arguments.memory),
                odf=arguments.odf,
                scalings=arguments.scaling,
                languages=arguments.languages,
                models=arguments.models,
                stagings=arguments.staging,
                size=arguments.size,
                iterations=arguments.iterations,
                warmup=arguments.warmup,
            )
        )
        for case in wanted:
            jacobi3d.program(case, programs)  # what is missing is better told before an hour of runs
        with make_progress(console) as progress:
            task = progress.add_task("", total=len(wanted) * arguments.runs)

            def step(label: str) -> None:
                started = progress.tasks[task].description != ""
                progress.update(task, advance=1 if started else 0, description=label)

            outcome = jacobi3d.measure(wanted, arguments.runs, programs, provenance(), step)
        if outcome.records:
            console.print(jacobi3d_report.table(outcome))
        for case, reason in outcome.failed.items():
            console.print(f"failed: {escape(case.label)}: {escape(reason)}", style="red", highlight=False)
        if arguments.json:
            write_records(arguments.json, outcome.records.values())
        if arguments.plot:
            jacobi3d_report.write_plot(arguments.plot, outcome)
    except BenchError as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    return 1 if outcome.failed or not outcome.records else 0


def run_published(arguments: argparse.Namespace) -> int:
    """Print the published figures beside those in the records of `arguments.files`."""
    console = make_console()
    try:
        records = [record for file in arguments.files for record in read_records(file)]
    except (BenchError, OSError) as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    console.print(published_table(records))
    return 0


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
