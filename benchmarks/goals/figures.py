"""The goals of this project on host memory: each is a measured figure with its limit.

A limit is absolute, or a multiple of what another system measured in the same run. If that system was
measured in several ways (raw UCX with different settings), the best one counts.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from weft_bench.programs import Programs
from weft_bench.question import DISTINCT_BUFFERS, Question, without_buffers
from weft_bench.record import METRICS, Record
from weft_bench.system import Series, System
from weft_bench.system_weft import Weft, weft_systems
from weft_bench.systems import reference_systems

_KIB = 1 << 10
_MIB = 1 << 20

LATENCY = Question("latency", (8,))
LARGE_LATENCY = Question("latency", (64 * _KIB, 256 * _KIB, 512 * _KIB, _MIB, 4 * _MIB))
LARGE_SIZES = (64 * _KIB, _MIB, 4 * _MIB, 64 * _MIB)
BANDWIDTH = Question("bandwidth", (4 * _MIB,))
LARGE_BANDWIDTH = Question("bandwidth", LARGE_SIZES)
DISTINCT_BANDWIDTH = Question("bandwidth", LARGE_SIZES, distinct=True)
ALLREDUCE = tuple(Question("allreduce", (8,), pes=pes) for pes in (2, 4, 8, 16, 32, 64))
REDUCTION = Question("reduction", (100_000,))
BUSY = Question("busy", (16 * _MIB,))
LOCAL_RATE = Question("rate", (8,), pes=1)
CROWDED_LATENCY = Question("latency", (8,), pes=4)
STARTUP = Question("startup", (0,))
LOCAL_STARTUP = Question("startup", (0,), pes=1)
MEMORY = Question("memory", (0,), pes=1)


@dataclasses.dataclass(frozen=True)
class Reference:
    """Another figure of the same run: the best of those whose path begins with `path`, or of `others`.

    An empty `language` is any.
    """

    system: str
    model: str
    path: str = ""
    language: str = ""
    others: tuple[Reference, ...] = ()


#: Tagged messages, with whichever settings are faster.
RAW_UCX = Reference("ucx", "machine", "tag")
MPI4PY = Reference("mpi4py-openmpi", "mpi")
OPEN_MPI = Reference("openmpi", "mpi")
BEST = dataclasses.replace(RAW_UCX, others=(OPEN_MPI, Reference("mpich", "mpi"), MPI4PY))
BEST_MPI = dataclasses.replace(OPEN_MPI, others=(Reference("mpich", "mpi"),))
#: Cores are near if a cache line takes less between them. Seen: near 37-117 ns, far 178-200 ns.
_NEAR_NS = 140.0


@dataclasses.dataclass(frozen=True)
class Goal:
    """What Weft should measure for `question` by one of `paths`: `limit`, times the reference if any.

    `question` has one size. `far_limit` is the limit where the cores are far from one another, if another.
    """

    text: str
    question: Question
    model: str
    language: str
    limit: float
    reference: Reference | None = None
    paths: tuple[str, ...] = ("",)
    far_limit: float | None = None


def _of_size(question: Question, size_bytes: int) -> Question:
    return dataclasses.replace(question, sizes=(size_bytes,))


def _large_goals() -> tuple[Goal, ...]:
    """Large messages in host memory: beside the best reference, and values beside channels."""
    sizes = dict(zip(LARGE_SIZES, ("64 KiB", "1 MiB", "4 MiB", "64 MiB"), strict=True))
    near_limits = dict(zip(LARGE_SIZES, (1.0, 1.4, 1.3, 1.0), strict=True))
    goals = []
    for language, name in (("cpp", "C++"), ("python", "Python")):
        for size, text in sizes.items():
            one, distinct = _of_size(LARGE_BANDWIDTH, size), _of_size(DISTINCT_BANDWIDTH, size)
            far = 1.8 if size == _MIB else None
            near = near_limits[size]
            goals += [
                Goal(f"{name} channel, {text}", one, "channel", language, near, BEST, far_limit=far),
                Goal(f"{name} channel, {text}, {DISTINCT_BUFFERS}", distinct, "channel", language, 1.3, BEST),
            ]
            if size <= 4 * _MIB:
                channel = Reference("weft", "channel", language=language)
                goals.append(Goal(f"{name} by value, {text}", one, "messaging", language, 0.5, channel))
        latency = _of_size(LARGE_LATENCY, 4 * _MIB)
        goals.append(Goal(f"{name} channel, 4 MiB one way", latency, "channel", language, 0.75, OPEN_MPI))
    return tuple(goals)


def _argument_goals() -> tuple[Goal, ...]:
    """Large arguments of entry methods, beside those of Charm++."""
    goals = []
    for size, text in zip(
        LARGE_LATENCY.sizes, ("64 KiB", "256 KiB", "512 KiB", "1 MiB", "4 MiB"), strict=True
    ):
        latency = _of_size(LARGE_LATENCY, size)
        for way, name, path in (("array", "by value", ""), ("vector",) * 3, ("nocopy",) * 3):
            figure = f"C++ {name}, {text} one way"
            goals.append(Goal(figure, latency, "messaging", "cpp", 1.0, _charm(way), (path,)))
    return tuple(goals)


def _mpi_goals() -> tuple[Goal, ...]:
    """MPI on Weft, beside the better of the MPI libraries."""
    goals = [
        Goal("MPI in C, 8 B one way", LATENCY, "mpi", "cpp", 1.1, BEST_MPI),
        Goal("mpi4py, 8 B one way", LATENCY, "mpi", "python", 1.1, MPI4PY, ("mpi4py",)),
    ]
    for size, text, limit in ((_MIB, "1 MiB", 1.5), (4 * _MIB, "4 MiB", 1.2)):
        bandwidth = _of_size(LARGE_BANDWIDTH, size)
        goals.append(Goal(f"MPI in C, {text} bandwidth", bandwidth, "mpi", "cpp", limit, BEST_MPI))
    return tuple(goals)


def _charm(way: str) -> Reference:
    return Reference("charm++", "messaging", way)


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
    *_large_goals(),
    *_argument_goals(),
    *_mpi_goals(),
    *(
        Goal(f"C++ allreduce of a double, {question.pes} PEs", question, "messaging", "cpp", 1.0, OPEN_MPI)
        for question in ALLREDUCE
    ),
    Goal(
        "C++ broadcast to 100,000 elements and reduction",
        REDUCTION,
        "messaging",
        "cpp",
        0.7,
        _charm("array"),
        ("elements",),
    ),
    Goal("16 MiB to a PE that computes, until it is there", BUSY, "channel", "cpp", 10_000.0),
)


def questions(programs: Programs, charm4py_source: Path | None = None) -> list[tuple[Question, list[System]]]:
    """What has to be asked of whom to judge every goal."""
    every = weft_systems(programs)
    own = [system for system in every if system.series.path not in ("vector", "nocopy")]
    rivals = reference_systems("all", programs, charm4py_source)
    fast_rivals = reference_systems("ucx,openmpi,mpich,mpi4py-openmpi", programs)
    large = _by_language([*own, *fast_rivals])
    charm = reference_systems("charm++", programs)
    allreduce = [
        Weft("messaging", "cpp", "allreduce", programs),
        *reference_systems("openmpi,mpich", programs),
    ]
    return [
        (LATENCY, _by_language([*own, *rivals])),
        (LARGE_LATENCY, _by_language([*every, *fast_rivals, *charm])),
        (LARGE_BANDWIDTH, large),
        (DISTINCT_BANDWIDTH, large),
        *((question, allreduce) for question in ALLREDUCE),
        (REDUCTION, [Weft("messaging", "cpp", "collective_times", programs, "elements"), *charm[:1]]),
        (BUSY, [Weft("channel", "cpp", "busy_receiver", programs)]),
        (LOCAL_RATE, [Weft("messaging", "cpp", "local_entry_rate", programs, "same PE")]),
        (STARTUP, [Weft("messaging", "cpp", "array_startup", programs, "100,000 elements")]),
        (MEMORY, [Weft("messaging", "cpp", "chare_memory", programs, "per chare")]),
        (LOCAL_STARTUP, [Weft("messaging", "python", "chare_creation.py", programs, "10,000 chares")]),
        (
            CROWDED_LATENCY,
            [Weft("messaging", "cpp", "oversubscribed_pingpong", programs, "4 PEs, worst pair")],
        ),
    ]


def goals_beside(system: str) -> tuple[Goal, ...]:
    """The goals that compare Weft with `system`."""
    return tuple(goal for goal in GOALS if any(system == reference.system for reference in _references(goal)))


def _references(goal: Goal) -> tuple[Reference, ...]:
    return () if goal.reference is None else (goal.reference, *goal.reference.others)


def narrowed(
    asked: Sequence[tuple[Question, list[System]]], goals: Sequence[Goal]
) -> list[tuple[Question, list[System]]]:
    """What of `asked` is needed to judge `goals` alone."""
    result = []
    for question, systems in asked:
        singles = [_of_size(question, size) for size in question.sizes]
        needed = [goal for goal in goals if goal.question in singles]
        sizes = tuple(size for size in question.sizes if any(size in goal.question.sizes for goal in needed))
        who = [s for s in systems if any(_is_measured(s.series, g) or _is_rival(s.series, g) for g in needed)]
        if needed:
            result.append((dataclasses.replace(question, sizes=sizes), who))
    return result


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
    def factor(self) -> float:
        """The goal's limit at the distance at which the cores were."""
        if self.goal.far_limit is None or self.measured is None:
            return self.goal.limit
        distance = re.search(r"cores (\d+) ns apart", self.measured.host)
        is_far = distance is not None and float(distance[1]) >= _NEAR_NS
        return self.goal.far_limit if is_far else self.goal.limit

    @property
    def limit(self) -> float | None:
        """In the unit of the measured value."""
        if self.goal.reference is None:
            return self.factor
        return None if self.reference is None else self.factor * self.reference.median

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
    question = goal.question
    asked = [
        record
        for record in records
        if (record.bench, record.pes, record.size_bytes, record.memory)
        == (question.bench, question.pes, question.sizes[0], question.memory)
        # Records of 21 November 2026 and before do not name the buffer: it was one.
        and record.path.endswith(DISTINCT_BUFFERS) == question.distinct
    ]
    measured = [record for record in asked if _is_measured(record, goal)]
    rivals = [record for record in asked if _is_rival(record, goal)]
    best = min if METRICS[goal.question.metric][1] else max
    return Verdict(
        goal,
        best(measured, key=lambda record: record.median) if measured else None,
        best(rivals, key=lambda record: record.median) if rivals else None,
    )


def _is_measured(found: Record | Series, goal: Goal) -> bool:
    wanted = ("weft", goal.model, goal.language)
    return (found.system, found.model, found.language) == wanted and without_buffers(found.path) in goal.paths


def _is_rival(found: Record | Series, goal: Goal) -> bool:
    return any(
        (found.system, found.model) == (reference.system, reference.model)
        and reference.language in ("", found.language)
        and found.path.startswith(reference.path)
        for reference in _references(goal)
    )
