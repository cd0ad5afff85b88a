"""How the benches run what they measure: launches that end in time, and systems asked in turn."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Iterator, Sequence

from rich.console import Console

from weft_bench.errors import BenchError
from weft_bench.launches import Launches
from weft_bench.programs import Programs
from weft_bench.progress import progress_on
from weft_bench.provenance import provenance
from weft_bench.question import Question
from weft_bench.schedule import Outcome, ask
from weft_bench.steadiness import core_distance_ns
from weft_bench.system import System


def expect_runs(arguments: argparse.Namespace) -> None:
    """Raise BenchError if ``--runs`` is no number of runs."""
    if arguments.runs < 1:
        raise BenchError(f"--runs {arguments.runs}: at least one run is needed")


@contextlib.contextmanager
def launches_of(arguments: argparse.Namespace, console: Console) -> Iterator[Launches]:
    """The launches of a bench within the limits of its arguments. Signals end them; `console` shows them."""
    limit_s = math.inf if arguments.minutes is None else 60 * arguments.minutes
    with progress_on(console) as teller:
        launches = Launches(limit_s, arguments.json, teller)
        with launches.ended_by_signals():
            yield launches


def ask_question(
    question: Question, systems: Sequence[System], runs: int, programs: Programs, launches: Launches
) -> Outcome:
    """Ask the systems `question` in turn, `runs` times; those that are absent are listed in the outcome."""
    present = [system for system in systems if system.absent(question) is None]
    launches.teller.expect(len(present) * runs)

    def distance() -> float | None:
        # What a message of device memory takes is not decided by where the cores are.
        return core_distance_ns(programs) if question.memory == "host" else None

    return ask(question, systems, runs, provenance(), launches, distance)
