"""Putting a question to several systems in turn, and making records of what they say."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Callable, Collection, Sequence

from weft_bench.errors import BenchError
from weft_bench.launches import Launches, Stopped, what_was_taken
from weft_bench.provenance import Provenance
from weft_bench.question import Question
from weft_bench.record import METRICS, Record
from weft_bench.steadiness import Steadiness
from weft_bench.system import Reading, System


@dataclasses.dataclass
class Outcome:
    """All that a question brought: records, systems that are not here, systems that failed (label -> why).

    `unsteady` says how many runs are lacking because the cores moved too often; a system without any at the
    distance that counts is represented by its others. `stopped` says why there were fewer runs than asked
    for, and what that left.
    """

    records: list[Record] = dataclasses.field(default_factory=list)
    absent: dict[str, str] = dataclasses.field(default_factory=dict)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    unsteady: int = 0
    stopped: list[str] = dataclasses.field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Take in what another question brought."""
        self.records += other.records
        self.absent.update(other.absent)
        self.failed.update(other.failed)
        self.unsteady += other.unsteady
        self.stopped += other.stopped


def ask(
    question: Question,
    systems: Sequence[System],
    runs: int,
    provenance: Provenance,
    launches: Launches | None = None,
    distance: Callable[[], float | None] = lambda: None,
) -> Outcome:
    """Run every present system `runs` times in the order A, B, C, A, B, C, ... and make the records.

    Neighbours in time share what else the machine does: slow drift moves all systems alike. Runs made while
    the cores were at another distance are kept apart (see steadiness.py): the turns go on until every system
    has `runs` runs at one distance, and those count. A system that fails once is asked no further; the others
    go on. `launches` hears of each run, keeps the records after each turn, and may end the turns early.
    `distance` tells how far apart the cores are.
    """
    launches = launches or Launches()
    asking = _Asking(question, systems, runs, provenance, Steadiness(distance))
    try:
        for turn in range(_MOST_TURNS * runs):
            if not asking.take_turn(turn, launches):
                break
            launches.keep(asking.outcome().records)
        outcome = asking.outcome()
    except Stopped as stopped:
        outcome = asking.outcome(str(stopped))
    launches.keep(outcome.records)
    return outcome


class _Asking:
    """A question on its way to those systems that are here."""

    def __init__(
        self,
        question: Question,
        systems: Sequence[System],
        runs: int,
        provenance: Provenance,
        steadiness: Steadiness,
    ) -> None:
        self._question = question
        self._runs = runs
        self._provenance = provenance
        self._steadiness = steadiness
        self._absent: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._present: list[System] = []
        for system in systems:
            reason = system.absent(question)
            if reason is None:
                self._present.append(system)
            else:
                self._absent[system.series.label] = reason
        self._taken = {system.series.label: Runs() for system in self._present}

    def take_turn(self, turn: int, launches: Launches) -> bool:
        """Whether anything was run. Raises Stopped; what was taken before stays."""
        lead = _leading_distance(self._taken.values(), self._runs)
        lacking = [
            system
            for system in self._present
            # After the turns that all take, only who lacks runs where the others have them.
            if (taken := self._taken.get(system.series.label)) is not None
            and (turn < self._runs or len(taken.at(lead)) < self._runs)
        ]
        if turn >= self._runs:
            launches.teller.expect(len(lacking))
        for system in lacking:
            label = system.series.label
            run = functools.partial(launches.run, label, functools.partial(system.run, self._question))
            try:
                self._taken[label].add(*self._steadiness.run(run))
            except BenchError as error:
                self._failed[label] = str(error)
                del self._taken[label]
        return bool(lacking)

    def outcome(self, stopped: str = "") -> Outcome:
        """Of what was taken so far, with why no more was."""
        outcome = Outcome(absent=dict(self._absent), failed=dict(self._failed))
        lead = _leading_distance(self._taken.values(), self._runs)
        provenance = self._provenance
        if lead < len(self._steadiness.distances_ns):
            host = f"{provenance.host}, cores {self._steadiness.distances_ns[lead]:.0f} ns apart"
            provenance = dataclasses.replace(provenance, host=host)
        for system in self._present:
            taken = self._taken.get(system.series.label)
            if taken is not None and taken.all:
                counting = taken.at(lead)[: self._runs]
                outcome.unsteady += 0 if stopped else self._runs - len(counting)
                outcome.records += records_of(self._question, system, counting or taken.all, provenance)
        if stopped:
            counts = {label: len(taken.all) for label, taken in self._taken.items()}
            outcome.stopped = [f"{stopped}: {what_was_taken(counts, self._runs)}"]
        return outcome


#: Turns for each run that is asked for, before what the cores' moves left is taken.
_MOST_TURNS = 4


class Runs:
    """What the runs of one system said, by the distance of the cores."""

    def __init__(self) -> None:
        self.all: list[list[Reading]] = []
        self._at: dict[int, list[list[Reading]]] = {}

    def add(self, readings: list[Reading], distance: int | None) -> None:
        self.all.append(readings)
        if distance is not None:
            self._at.setdefault(distance, []).append(readings)

    def at(self, distance: int) -> list[list[Reading]]:
        return self._at.get(distance, [])

    @property
    def distances(self) -> set[int]:
        return set(self._at)


def _leading_distance(taken: Collection[Runs], runs: int) -> int:
    """The distance at which the fewest runs are lacking."""
    seen = {0}.union(*(one.distances for one in taken))
    return max(sorted(seen), key=lambda distance: sum(min(len(one.at(distance)), runs) for one in taken))


def records_of(
    question: Question, system: System, runs: Sequence[Sequence[Reading]], provenance: Provenance
) -> list[Record]:
    """One record per size from the readings of several runs, all with the same sizes in the same order."""
    records = []
    for same_size in zip(*runs, strict=True):
        values = [reading.value for reading in same_size]
        records.append(
            Record(
                bench=question.bench,
                system=system.series.system,
                model=system.series.model,
                language=system.series.language,
                memory=question.memory,
                path=question.path(system.series.path),
                pes=question.pes,
                size_bytes=same_size[0].size_bytes,
                metric=question.metric,
                unit=METRICS[question.metric][0],
                median=statistics.median(values),
                min=min(values),
                max=max(values),
                runs=len(values),
                warmup=same_size[0].warmup,
                git=provenance.git,
                host=provenance.host,
                date=provenance.date,
            )
        )
    return records
