"""What ``weft study`` does with its parsed arguments."""

from __future__ import annotations

import argparse
import importlib.util
import math
import random
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from weft_bench.errors import BenchError
from weft_bench.gpus import expect_memory
from weft_bench.launches import Launches
from weft_bench.programs import Programs
from weft_bench.progress import progress_on
from weft_bench.provenance import provenance
from weft_bench.report import make_console
from weft_bench.study.claims import Verdict, judge
from weft_bench.study.plan import Study
from weft_bench.study.plot import write_plot
from weft_bench.study.report import markdown, problem_lines, table
from weft_bench.study.running import Outcome, run_study
from weft_bench.study.studies import STUDIES
from weft_bench.study.summary import rows_of
from weft_bench.study.trials import Header, TrialFile

TRIALS, PAGE, PICTURE = "trials.jsonl", "report.md", "times.png"


def run(arguments: argparse.Namespace) -> int:
    """Make the missing trials, print, write files.

    The exit status: 0, or 1 when a variant failed or nothing was measured; a signal's when one ended it.
    """
    console = make_console()
    try:
        expect_memory(arguments.memory)
        study = STUDIES[arguments.study][0](arguments)
        folder = arguments.output or Path(f"study-{study.name}")
        file = open_trials(study, folder, arguments.seed, arguments.fresh)
        console.print(beginning(study, file), highlight=False, markup=False)
        programs = Programs(arguments.programs)
        limit_s = math.inf if arguments.minutes is None else 60 * arguments.minutes
        with progress_on(console) as teller:
            launches = Launches(limit_s, teller=teller)
            with launches.ended_by_signals():
                outcome = run_study(
                    study,
                    file,
                    programs,
                    launches,
                    when_group_ends=lambda: write_report(study, file, Outcome(), folder),
                )
        write_report(study, file, outcome, folder)
        show(study, file, outcome, folder, console)
    except (BenchError, OSError) as error:
        print(f"weft study: {error}", file=sys.stderr)
        return 1
    return launches.exit_status(1 if outcome.failed or not file.trials else 0)


def open_trials(study: Study, folder: Path, seed: int | None, fresh: bool) -> TrialFile:
    """The file in `folder`, with the trials that it has. With `fresh` a new one replaces it.

    Raises:
        BenchError: the file belongs to something else.
    """
    path = folder / TRIALS
    if fresh:
        path.unlink(missing_ok=True)
    drawn = random.SystemRandom().randrange(2**31) if seed is None else seed
    header = Header(study.settings(), drawn, provenance())
    return TrialFile(path, header, seed_is_given=seed is not None)


def beginning(study: Study, file: TrialFile) -> str:
    """One line before it starts."""
    wanted = study.trials * sum(len(group.variants) for group in study.groups)
    resumed = f"; {len(file.trials)} of {wanted} trials are in {file.path}" if file.trials else ""
    return f"study {study.name}: {study.launches} launches at most, seed {file.header.seed}{resumed}"


def write_report(study: Study, file: TrialFile, outcome: Outcome, folder: Path) -> None:
    """Writes the page, and the picture if matplotlib is installed."""
    rows = rows_of(study, file.values, file.mean_of)
    picture = ""
    problems = problem_lines(study, rows, outcome)
    if rows and importlib.util.find_spec("matplotlib") is not None:
        try:
            write_plot(folder / PICTURE, study, file.header, rows, file.values)
            picture = PICTURE
        except BenchError as error:  # matplotlib is there and cannot be imported
            problems.append(str(error))
    verdicts = judge(study, file.values, failed=outcome.failed)
    page = markdown(study, file.header, rows, verdicts, problems, picture)
    (folder / PAGE).write_text(page, encoding="utf-8")


def show(study: Study, file: TrialFile, outcome: Outcome, folder: Path, console: Console) -> None:
    """Prints the table, the verdicts, what is missing, and where the files are."""
    rows = rows_of(study, file.values, file.mean_of)
    if rows:
        console.print(table(study, rows))
        for verdict in judge(study, file.values, failed=outcome.failed):
            console.print(verdict_line(verdict), highlight=False)
    for problem in problem_lines(study, rows, outcome):
        console.print(escape(problem), style="yellow", highlight=False)
    where = file.header.where
    console.print(f"{where.host}; {where.date}; {where.git}", style="dim", highlight=False, markup=False)
    console.print(f"written: {folder / PAGE}, {folder / TRIALS}", highlight=False, markup=False)
    if importlib.util.find_spec("matplotlib") is None:
        console.print("no picture: pip install matplotlib", style="yellow")


def verdict_line(verdict: Verdict) -> str:
    """For the terminal, with markup."""
    return f"[bold]{verdict.verdict}[/bold]: {escape(verdict.claim.text)}: {escape(verdict.why)}"
