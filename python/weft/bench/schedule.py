"""Putting a question to several systems in turn, and making records of what they say."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Callable, Sequence

from weft.bench.errors import BenchError
from weft.bench.provenance import Provenance
from weft.bench.question import Question
from weft.bench.record import METRICS, Record
from weft.bench.steadiness import Steadiness
from weft.bench.system import Reading, System


@dataclasses.dataclass
class Outcome:
    """All that a question brought: records, systems that are not here, systems that failed (label -> why).

    `unsteady` runs were made while the machine was not as in the others.
    """

    records: list[Record] = dataclasses.field(default_factory=list)
    absent: dict[str, str] = dataclasses.field(default_factory=dict)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    unsteady: int = 0


def ask(
    question: Question,
    systems: Sequence[System],
    runs: int,
    provenance: Provenance,
    progress: Callable[[str], None] = lambda label: None,
    distance: Callable[[], float | None] = lambda: None,
) -> Outcome:
    """Run every present system `runs` times in the order A, B, C, A, B, C, ... and make the records.

    Neighbours in time share what else the machine does, so slow drift moves all systems alike. A system that
    fails once is asked no further; the others go on. `progress` is called with a label before each run.
    `distance` tells how far apart the cores are; see steadiness.py.
    """
    outcome = Outcome()
    steadiness = Steadiness(distance)
    if steadiness.expected_ns is not None:
        host = f"{provenance.host}, cores {steadiness.expected_ns:.0f} ns apart"
        provenance = dataclasses.replace(provenance, host=host)
    present: list[System] = []
    for system in systems:
        reason = system.absent(question)
        if reason is None:
            present.append(system)
        else:
            outcome.absent[system.series.label] = reason
    readings: dict[int, list[list[Reading]]] = {index: [] for index in range(len(present))}
    for _ in range(runs):
        for index, system in enumerate(present):
            label = system.series.label
            if label in outcome.failed:
                continue
            progress(label)
            try:
                readings[index].append(steadiness.run(functools.partial(system.run, question)))
            except BenchError as error:
                outcome.failed[label] = str(error)
    outcome.unsteady = steadiness.unsteady
    for index, system in enumerate(present):
        if system.series.label not in outcome.failed:
            outcome.records += records_of(question, system, readings[index], provenance)
    return outcome


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
                path=system.series.path,
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
