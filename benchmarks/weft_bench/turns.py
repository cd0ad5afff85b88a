"""Cases that take turns: each run a fresh job, so that other load on the machine affects all cases alike."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from weft_bench.errors import BenchError
from weft_bench.launches import Launches, Stopped, what_was_taken


class Labelled(Hashable, Protocol):
    """What is run. The label is for people."""

    @property
    def label(self) -> str: ...


Case = TypeVar("Case", bound=Labelled)
Result = TypeVar("Result")


@dataclasses.dataclass
class Taken(Generic[Case, Result]):
    """Results of the runs by case, the cases that failed with why, and why there were fewer runs."""

    results: dict[Case, list[Result]]
    failed: dict[Case, str] = dataclasses.field(default_factory=dict)
    stopped: list[str] = dataclasses.field(default_factory=list)


def take_turns(
    wanted: Sequence[Case],
    runs: int,
    launches: Launches,
    run: Callable[[Case], Result],
    after_turn: Callable[[dict[Case, list[Result]]], None],
) -> Taken[Case, Result]:
    """Run every case `runs` times, case after case. A case that fails once is run no further."""
    taken: Taken[Case, Result] = Taken({case: [] for case in wanted})
    try:
        for _ in range(runs):
            for case in wanted:
                if case not in taken.results:
                    continue
                try:
                    taken.results[case].append(launches.run(case.label, functools.partial(run, case)))
                except BenchError as error:
                    taken.failed[case] = str(error)
                    del taken.results[case]
            after_turn(taken.results)
    except Stopped as stopped:
        counts = {case.label: len(results) for case, results in taken.results.items()}
        taken.stopped = [f"{stopped}: {what_was_taken(counts, runs)}"]
    return taken
