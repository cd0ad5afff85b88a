"""The goals of this project on host memory: each is a measured figure with its limit.

A limit is absolute, or a multiple of what another system measured in the same run. If that system was
measured in several ways (raw UCX with different settings), the best one counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from weft.bench.programs import Programs
from weft.bench.question import Question
from weft.bench.record import METRICS, Record
from weft.bench.system import System
from weft.bench.system_weft import Weft, weft_systems
from weft.bench.systems import reference_systems

_MIB = 1 << 20

LATENCY = Question("latency", (8,))
BANDWIDTH = Question("bandwidth", (4 * _MIB,))
LOCAL_RATE = Question("rate", (8,), pes=1)
CROWDED_LATENCY = Question("latency", (8,), pes=4)
STARTUP = Question("startup", (0,))
LOCAL_STARTUP = Question("startup", (0,), pes=1)
MEMORY = Question("memory", (0,), pes=1)


@dataclasses.dataclass(frozen=True)
class Reference:
    """Another system's figure in the same run: the best of those whose path begins with `path`."""

    system: str
    model: str
    path: str = ""


#: Tagged messages, with whichever settings are faster.
RAW_UCX = Reference("ucx", "machine", "tag")
MPI4PY = Reference("mpi4py-openmpi", "mpi")


@dataclasses.dataclass(frozen=True)
class Goal:
    """What Weft should measure for `question` by one of `paths`: `limit`, times the reference if any."""

    text: str
    question: Question
    model: str
    language: str
    limit: float
    reference: Reference | None = None
    paths: tuple[str, ...] = ("",)


GOALS: tuple[Goal, ...] = (
    Goal("bare machine, tagged 8 B one way", LATENCY, "machine", "cpp", 1.10, RAW_UCX, ("tag",)),
    Goal("C++ channel, 8 B one way", LATENCY, "channel", "cpp", 1.25, RAW_UCX),
    Goal("C++ entry method, 8 B one way", LATENCY, "messaging", "cpp", 1.8, RAW_UCX),
    Goal("C++ channel, 4 MiB bandwidth", BANDWIDTH, "channel", "cpp", 0.95, RAW_UCX),
    Goal("Python channel, 8 B one way", LATENCY, "channel", "python", 1.5, MPI4PY),
    Goal(
        "Python channel, 8 B one way", LATENCY, "channel", "python", 1 / 3, Reference("charm4py", "channel")
    ),
    Goal(
        "Python entry method, 8 B one way",
        LATENCY,
        "messaging",
        "python",
        1 / 2,
        Reference("charm4py", "messaging"),
    ),
    Goal("Python channel, 4 MiB bandwidth", BANDWIDTH, "channel", "python", 0.9, MPI4PY),
    Goal("C++ local entry method", LOCAL_RATE, "messaging", "cpp", 5.0, paths=("same PE",)),
    Goal(
        "C++ array of 100,000: create, broadcast, reduce",
        STARTUP,
        "messaging",
        "cpp",
        0.2,
        paths=("100,000 elements",),
    ),
    Goal("C++ memory of a chare beyond its members", MEMORY, "messaging", "cpp", 200.0, paths=("per chare",)),
    Goal("10,000 Python chares created", LOCAL_STARTUP, "messaging", "python", 0.2, paths=("10,000 chares",)),
    Goal(
        "4 PEs on 2 cores, 8 B one way, worst pair",
        CROWDED_LATENCY,
        "messaging",
        "cpp",
        20.0,
        paths=("4 PEs, worst pair",),
    ),
)


def questions(programs: Programs, charm4py_source: Path | None = None) -> list[tuple[Question, list[System]]]:
    """What has to be asked of whom to judge every goal."""
    own = weft_systems(programs)
    rivals = reference_systems("all", programs, charm4py_source)
    fast_rivals = reference_systems("ucx,mpi4py-openmpi", programs)
    return [
        (LATENCY, _by_language([*own, *rivals])),
        (BANDWIDTH, _by_language([*own, *fast_rivals])),
        (LOCAL_RATE, [Weft("messaging", "cpp", "local_entry_rate", programs, "same PE")]),
        (STARTUP, [Weft("messaging", "cpp", "array_startup", programs, "100,000 elements")]),
        (MEMORY, [Weft("messaging", "cpp", "chare_memory", programs, "per chare")]),
        (LOCAL_STARTUP, [Weft("messaging", "python", "chare_creation.py", programs, "10,000 chares")]),
        (
            CROWDED_LATENCY,
            [Weft("messaging", "cpp", "oversubscribed_pingpong", programs, "4 PEs, worst pair")],
        ),
    ]


def _by_language(systems: list[System]) -> list[System]:
    """What is compared with one another runs one after the other, and so sees the machine in one mood."""
    return sorted(systems, key=lambda system: system.series.language)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A goal with what was measured; None where a system was absent or failed."""

    goal: Goal
    measured: Record | None
    reference: Record | None

    @property
    def limit(self) -> float | None:
        """In the unit of the measured value."""
        if self.goal.reference is None:
            return self.goal.limit
        return None if self.reference is None else self.goal.limit * self.reference.median

    @property
    def ratio(self) -> float | None:
        """Measured over reference."""
        if self.measured is None or self.reference is None:
            return None
        return self.measured.median / self.reference.median

    @property
    def ratio_of_best(self) -> float | None:
        """The same of the best run of each, which was disturbed the least, but is only one."""
        if self.measured is None or self.reference is None:
            return None
        if METRICS[self.goal.question.metric][1]:
            return self.measured.min / self.reference.min
        return self.measured.max / self.reference.max

    @property
    def met(self) -> bool | None:
        """None when it cannot be told."""
        if self.measured is None or self.limit is None:
            return None
        at_most = METRICS[self.goal.question.metric][1]
        return self.measured.median <= self.limit if at_most else self.measured.median >= self.limit


def judge(records: Sequence[Record], goals: Sequence[Goal] = GOALS) -> list[Verdict]:
    """A verdict for each goal from the records of its question."""
    return [_judge(goal, records) for goal in goals]


def judge_files(
    files: Sequence[Sequence[Record]], judge_one: Callable[[Sequence[Record]], list[Verdict]] = judge
) -> list[Verdict]:
    """A verdict for each goal, from the first of `files` that tells: what is compared was in one run."""
    judged = [judge_one(records) for records in files or [[]]]
    return [
        next((verdict for verdict in verdicts if verdict.met is not None), verdicts[0])
        for verdicts in zip(*judged, strict=True)
    ]


def _judge(goal: Goal, records: Sequence[Record]) -> Verdict:
    asked = [
        record
        for record in records
        if (record.bench, record.pes, record.size_bytes, record.memory)
        == (goal.question.bench, goal.question.pes, goal.question.sizes[0], goal.question.memory)
    ]
    wanted = ("weft", goal.model, goal.language)
    measured = [r for r in asked if (r.system, r.model, r.language) == wanted and r.path in goal.paths]
    rivals = [r for r in asked if goal.reference is not None and _is_reference(r, goal.reference)]
    best = min if METRICS[goal.question.metric][1] else max
    return Verdict(
        goal,
        best(measured, key=lambda record: record.median) if measured else None,
        best(rivals, key=lambda record: record.median) if rivals else None,
    )


def _is_reference(record: Record, reference: Reference) -> bool:
    same_system = (record.system, record.model) == (reference.system, reference.model)
    return same_system and record.path.startswith(reference.path)
