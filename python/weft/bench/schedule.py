"""Putting a question to several systems in turn, and making records of what they say."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Callable, Collection, Sequence

from weft.bench.errors import BenchError
from weft.bench.provenance import Provenance
from weft.bench.question import Question
from weft.bench.record import METRICS, Record
from weft.bench.steadiness import Steadiness
from weft.bench.system import Reading, System


@dataclasses.dataclass
class Outcome:
    """All that a question brought: records, systems that are not here, systems that failed (label -> why).

    `unsteady` says how many runs are lacking because the cores moved too often; a system without any at the
    distance that counts is represented by its others.
    """

    records: list[Record] = dataclasses.field(default_factory=list)
    absent: dict[str, str] = dataclasses.field(default_factory=dict)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    unsteady: int = 0

    def add(self, other: Outcome) -> None:
        """Take in what another question brought."""
        self.records += other.records
        self.absent.update(other.absent)
        self.failed.update(other.failed)
        self.unsteady += other.unsteady


def ask(
    question: Question,
    systems: Sequence[System],
    runs: int,
    provenance: Provenance,
    progress: Callable[[str], None] = lambda label: None,
    distance: Callable[[], float | None] = lambda: None,
) -> Outcome:
    """Run every present system `runs` times in the order A, B, C, A, B, C, ... and make the records.

    Neighbours in time share what else the machine does: slow drift moves all systems alike. Runs made while
    the cores were at another distance are kept apart (see steadiness.py): the turns go on until every system
    has `runs` runs at one distance, and those count. A system that fails once is asked no further; the others
    go on. `progress` is called with a label before each run. `distance` tells how far apart the cores are.
    """
    outcome = Outcome()
    steadiness = Steadiness(distance)
    present: list[System] = []
    for system in systems:
        reason = system.absent(question)
        if reason is None:
            present.append(system)
        else:
            outcome.absent[system.series.label] = reason
    taken = {system.series.label: Runs() for system in present}
    for turn in range(_MOST_TURNS * runs):
        lead = _leading_distance(taken.values(), runs)
        for system in present:
            label = system.series.label
            # After the turns that all take, only who lacks runs where the others have them.
            if label in taken and (turn < runs or len(taken[label].at(lead)) < runs):
                progress(label)
                try:
                    taken[label].add(*steadiness.run(functools.partial(system.run, question)))
                except BenchError as error:
                    outcome.failed[label] = str(error)
                    del taken[label]
    lead = _leading_distance(taken.values(), runs)
    if lead < len(steadiness.distances_ns):
        host = f"{provenance.host}, cores {steadiness.distances_ns[lead]:.0f} ns apart"
        provenance = dataclasses.replace(provenance, host=host)
    for system in present:
        if system.series.label in taken:
            counting = taken[system.series.label].at(lead)[:runs]
            outcome.unsteady += runs - len(counting)
            outcome.records += records_of(
                question, system, counting or taken[system.series.label].all, provenance
            )
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
                path=", ".join(part for part in (system.series.path, question.placement) if part),
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
