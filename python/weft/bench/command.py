"""What the benches of ``weft bench`` do with their parsed arguments."""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import sys
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape

from weft.bench import jacobi3d, jacobi3d_report
from weft.bench.errors import BenchError
from weft.bench.figures import judge, judge_files, questions
from weft.bench.gpu_figures import gpu_questions, judge_gpu
from weft.bench.gpus import expect_memory, gpu_names, placements
from weft.bench.launches import Launches
from weft.bench.plot import write_plot
from weft.bench.programs import Programs
from weft.bench.progress import progress_on
from weft.bench.provenance import provenance
from weft.bench.question import MIN_RUNS, Question, default_sizes, parse_sizes
from weft.bench.record import Record, read_records
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
        _expect_runs(arguments)
        programs = Programs(arguments.programs)
        references = reference_systems(arguments.against, programs, arguments.charm4py_source, memory)
        systems: list[System] = [*weft_systems(programs, memory), *references]
        places = placements(memory, arguments.placement)
        outcome = Outcome()
        with _launches(arguments, console) as launches:
            for number, devices in enumerate(places):
                question = Question(arguments.bench, sizes, memory, devices=devices)
                launches.begin_part(len(places) - number)
                outcome.add(_ask(question, systems, arguments.runs, programs, launches))
        show(outcome, console)
        if arguments.runs < MIN_RUNS:
            console.print(
                f"{arguments.runs} runs are too few to rely on: take {MIN_RUNS} or more", style="yellow"
            )
        if arguments.plot:
            write_plot(arguments.plot, outcome.records)
    except BenchError as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    return launches.exit_status(1 if outcome.failed or not outcome.records else 0)


def run_figures(arguments: argparse.Namespace) -> int:
    """Measure what the goals need, or take it from files, and print the verdicts.

    The exit status is 0 when all goals are met.
    """
    console = make_console()
    on_device = arguments.memory != "host"
    judge_one = functools.partial(judge_gpu, memory=arguments.memory) if on_device else judge
    status = 0
    try:
        if arguments.files:
            files = [list(read_records(file)) for file in arguments.files]
        else:
            records, status = _measure_figures(arguments, console)
            files = [records]
        verdicts = judge_files(files, judge_one)
        console.print(verdict_table(verdicts))
    except (BenchError, OSError) as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    return status or (0 if all(verdict.met for verdict in verdicts) else 1)


def _measure_figures(arguments: argparse.Namespace, console: Console) -> tuple[list[Record], int]:
    """What the goals ask for, and the exit status if a system failed or a signal came, else 0."""
    _expect_runs(arguments)
    expect_memory(arguments.memory)
    if arguments.memory == "cuda" and len(gpu_names()) < 2:
        raise BenchError("--memory cuda: these figures are between two GPUs, and two are not here")
    programs = Programs(arguments.programs)
    if arguments.memory == "host":
        asked = questions(programs, arguments.charm4py_source)
    else:
        asked = gpu_questions(programs, arguments.memory)
    records: list[Record] = []
    failed = False
    with _launches(arguments, console) as launches:
        for number, (question, systems) in enumerate(asked):
            launches.begin_part(len(asked) - number)
            outcome = _ask(question, systems, arguments.runs, programs, launches)
            if len(systems) > 1:
                show(outcome, console)
            else:
                show_problems(outcome, console)
            records += outcome.records
            failed = failed or bool(outcome.failed)
    return records, launches.exit_status(1 if failed else 0)


def run_jacobi3d(arguments: argparse.Namespace) -> int:
    """Measure, print, write files; the exit status: 0, or 1 when a case failed or nothing was measured."""
    console = make_console()
    try:
        expect_memory(arguments.memory)
        _expect_runs(arguments)
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
                iterations=arguments.iterations or jacobi3d.DEFAULT_ITERATIONS[arguments.memory],
                warmup=arguments.warmup,
            )
        )
        for case in wanted:
            jacobi3d.program(case, programs)  # what is missing is better told before an hour of runs
        with _launches(arguments, console) as launches:
            launches.begin_part()
            launches.teller.expect(len(wanted) * arguments.runs)
            outcome = jacobi3d.measure(wanted, arguments.runs, programs, provenance(), launches)
        if outcome.records:
            console.print(jacobi3d_report.table(outcome))
        for text in outcome.stopped:
            console.print(escape(text), style="yellow", highlight=False)
        for case, reason in outcome.failed.items():
            console.print(f"failed: {escape(case.label)}: {escape(reason)}", style="red", highlight=False)
        if arguments.plot:
            jacobi3d_report.write_plot(arguments.plot, outcome)
    except BenchError as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    return launches.exit_status(1 if outcome.failed or not outcome.records else 0)


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


def _expect_runs(arguments: argparse.Namespace) -> None:
    if arguments.runs < 1:
        raise BenchError(f"--runs {arguments.runs}: at least one run is needed")


@contextlib.contextmanager
def _launches(arguments: argparse.Namespace, console: Console) -> Iterator[Launches]:
    """What makes the launches of a bench, as its arguments say: told on `console`, ended by signals too."""
    limit_s = math.inf if arguments.minutes is None else 60 * arguments.minutes
    with progress_on(console) as teller:
        launches = Launches(limit_s, arguments.json, teller)
        with launches.ended_by_signals():
            yield launches


def _ask(
    question: Question, systems: Sequence[System], runs: int, programs: Programs, launches: Launches
) -> Outcome:
    present = [system for system in systems if system.absent(question) is None]
    launches.teller.expect(len(present) * runs)

    def distance() -> float | None:
        # What a message of device memory takes is not decided by where the cores are.
        return core_distance_ns(programs) if question.memory == "host" else None

    return ask(question, systems, runs, provenance(), launches, distance)
