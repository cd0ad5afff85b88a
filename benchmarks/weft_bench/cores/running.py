"""The launches of ``weft bench cores``, and the records of what they say."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from weft_bench.cores.machine import Cores, median_cores, number_of_cores, sentence, spin
from weft_bench.cores.points import Point, read_figures
from weft_bench.cores.programs import Program
from weft_bench.launches import Launches
from weft_bench.process import capture
from weft_bench.provenance import Provenance
from weft_bench.record import METRICS, Record
from weft_bench.system import Reading
from weft_bench.turns import take_turns

#: A launch that takes longer hangs, or its PEs have far too few cores.
_TIMEOUT_S = 300.0


@dataclasses.dataclass(frozen=True)
class Case:
    """A program on so many PEs."""

    pes: int
    program: Program

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.program.name}, {self.pes} PEs"


@dataclasses.dataclass(frozen=True)
class Run:
    """What one launch said. `cores` is the spin test before it; None with more PEs than cores."""

    readings: Mapping[Point, Reading]
    path: str
    cores: Cores | None


@dataclasses.dataclass
class Outcome:
    """Records, the cores that each number of PEs had, cases that are absent or failed by label with why, and
    why there were fewer runs."""

    records: list[Record] = dataclasses.field(default_factory=list)
    cores: dict[int, str] = dataclasses.field(default_factory=dict)
    absent: dict[str, str] = dataclasses.field(default_factory=dict)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    stopped: list[str] = dataclasses.field(default_factory=list)


def run(case: Case, points: Sequence[Point], budget_s: float) -> Run:
    """One launch, after a spin test. Raises BenchError, with what it said."""
    cores = spin(case.pes) if case.pes <= number_of_cores() else None
    known = [point for point in points if case.program.knows(point)]
    command = [*case.program.command(case.pes), str(budget_s), *(point.argument() for point in known)]
    output = capture(command, case.label, timeout_s=_TIMEOUT_S)
    readings, library = read_figures(output, known, case.label)
    return Run(readings, case.program.version(library), cores)


def measure(
    programs: Sequence[Program],
    pes: Sequence[int],
    points: Sequence[Point],
    *,
    runs: int,
    budget_s: float,
    provenance: Provenance,
    launches: Launches,
) -> Outcome:
    """Run every program on every number of PEs `runs` times, in turns. The file is new after each turn."""
    outcome = Outcome()
    wanted = []
    for number in pes:
        for program in programs:
            case = Case(number, program)
            if (reason := program.absent(number)) is not None:
                outcome.absent[case.label] = reason
            elif any(program.knows(point) for point in points):
                wanted.append(case)
    launches.teller.expect(len(wanted) * runs)
    taken = take_turns(
        wanted,
        runs,
        launches,
        lambda case: run(case, points, budget_s),
        lambda found: launches.keep(records_of(found, provenance)),
    )
    outcome.failed = {case.label: reason for case, reason in taken.failed.items()}
    outcome.stopped = taken.stopped
    outcome.records = records_of(taken.results, provenance)
    for number in pes:
        found = [
            run.cores for case, results in taken.results.items() for run in results if case.pes == number
        ]
        if found:
            outcome.cores[number] = _sentence(number, found)
    launches.keep(outcome.records)
    return outcome


def records_of(results: Mapping[Case, Sequence[Run]], provenance: Provenance) -> list[Record]:
    """A record for each case and point."""
    return [
        _record(case, point, runs, provenance)
        for case, runs in results.items()
        if runs
        for point in runs[0].readings
    ]


def _record(case: Case, point: Point, runs: Sequence[Run], provenance: Provenance) -> Record:
    readings = [run.readings[point] for run in runs]
    values = [reading.value for reading in readings]
    series = case.program.series
    return Record(
        bench=point.bench,
        system=series.system,
        model=series.model,
        language=series.language,
        memory="host",
        path=runs[0].path,
        pes=case.pes,
        size_bytes=point.size_bytes,
        metric=point.metric,
        unit=METRICS[point.metric][0],
        median=statistics.median(values),
        min=min(values),
        max=max(values),
        runs=len(values),
        warmup=readings[0].warmup,
        git=provenance.git,
        host=f"{provenance.host}, {_sentence(case.pes, [run.cores for run in runs])}",
        date=provenance.date,
    )


def _sentence(pes: int, found: Sequence[Cores | None]) -> str:
    tests = [cores for cores in found if cores is not None]
    return sentence(pes, median_cores(tests) if tests else None)
