"""What the benches of ``weft bench`` do with their parsed arguments."""

from __future__ import annotations

import argparse
import sys

from rich.markup import escape

from weft_bench import jacobi3d, jacobi3d_report
from weft_bench.errors import BenchError
from weft_bench.gpus import expect_memory, placements
from weft_bench.plot import write_plot
from weft_bench.programs import Programs
from weft_bench.provenance import provenance
from weft_bench.question import MIN_RUNS, Question, default_sizes, distinct_sizes, parse_sizes
from weft_bench.report import make_console, show
from weft_bench.running import ask_question, expect_runs, launches_of
from weft_bench.schedule import Outcome
from weft_bench.system import System
from weft_bench.system_weft import weft_systems
from weft_bench.systems import reference_systems


def run_bench(arguments: argparse.Namespace) -> int:
    """Measure, print, write files; the exit status: 0, or 1 when a system failed or nothing was there."""
    console = make_console()
    try:
        memory = arguments.memory
        expect_memory(memory)
        sizes = parse_sizes(arguments.sizes) if arguments.sizes else default_sizes(arguments.bench, memory)
        expect_runs(arguments)
        programs = Programs(arguments.programs)
        references = reference_systems(
            arguments.against, programs, arguments.charm4py_source, memory, arguments.model
        )
        ways = weft_systems(programs, memory, arguments.model, arguments.paths)
        systems: list[System] = [*ways, *references]
        places = placements(memory, arguments.placement)
        questions = [Question(arguments.bench, sizes, memory, devices=devices) for devices in places]
        if questions[0].buffers and distinct_sizes(sizes):
            questions.append(Question(arguments.bench, distinct_sizes(sizes), memory, distinct=True))
        outcome = Outcome()
        with launches_of(arguments, console) as launches:
            for number, question in enumerate(questions):
                launches.begin_part(len(questions) - number)
                outcome.add(ask_question(question, systems, arguments.runs, programs, launches))
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


def run_jacobi3d(arguments: argparse.Namespace) -> int:
    """Measure, print, write files; the exit status: 0, or 1 when a case failed or nothing was measured."""
    console = make_console()
    try:
        expect_memory(arguments.memory)
        expect_runs(arguments)
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
        if not wanted:
            raise BenchError(
                "queued and graph are models of device memory that is not staged: give --memory emulated or "
                "cuda, and --staging device"
            )
        for case in wanted:
            jacobi3d.program(case, programs)  # what is missing is better told before an hour of runs
        with launches_of(arguments, console) as launches:
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
