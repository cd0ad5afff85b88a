"""The figures that Weft is held to on GPUs: beside raw UCX in the same run, and beside host staging.

The same can be tried out in emulated memory, where nothing is a pair of GPUs and raw UCX has no part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from goals.figures import RAW_UCX, Goal, Reference, Verdict, judge
from weft_bench.gpus import PAIR
from weft_bench.programs import Programs
from weft_bench.question import Question, default_sizes
from weft_bench.record import METRICS, Record
from weft_bench.system import System
from weft_bench.system_weft import weft_systems
from weft_bench.systems import reference_systems


def _question(bench: str, sizes: tuple[int, ...], memory: str) -> Question:
    return Question(bench, sizes, memory, devices=PAIR if memory == "cuda" else ())


def gpu_goals(memory: str = "cuda") -> tuple[Goal, ...]:
    """Those that questions of their own answer."""
    # Emulated devices have a processor's copies.
    large = (64 if memory == "cuda" else 4) << 20
    latency, bandwidth = _question("latency", (8,), memory), _question("bandwidth", (large,), memory)
    volume = f"{large >> 20} MiB bandwidth"

    def path(way: str) -> tuple[str]:
        return (f"{way}, {latency.placement}" if latency.placement else way,)

    # What a program gets that sets nothing.
    channel, entry_method = path("peer-mapped"), path("tagged")
    return (
        # 0.8 is hoped for.
        Goal("C++ channel, 8 B one way", latency, "channel", "cpp", 1.0, RAW_UCX, channel),
        Goal("C++ entry method, 8 B one way", latency, "messaging", "cpp", 1.4, RAW_UCX, entry_method),
        Goal("Python channel, 8 B one way", latency, "channel", "python", 1.15, RAW_UCX, channel),
        Goal(f"C++ channel, {volume}", bandwidth, "channel", "cpp", 0.97, RAW_UCX, channel),
        Goal(f"Python channel, {volume}", bandwidth, "channel", "python", 0.97, RAW_UCX, channel),
    )


def gpu_questions(programs: Programs, memory: str = "cuda") -> list[tuple[Question, list[System]]]:
    """What has to be asked of whom to judge every goal of gpu_goals(), and no more."""
    goals = gpu_goals(memory)
    systems: list[System] = [
        *weft_systems(programs, memory),
        *reference_systems("ucx", programs, memory=memory),
    ]

    def is_needed(system: System, question: Question) -> bool:
        series = system.series
        if series.system != "weft":
            return series.path.startswith(RAW_UCX.path)
        path = ", ".join(part for part in (series.path, question.placement) if part)
        return any(
            (goal.question, goal.model, goal.language) == (question, series.model, series.language)
            and path in goal.paths
            for goal in goals
        )

    return [
        (question, [system for system in systems if is_needed(system, question)])
        for question in dict.fromkeys(goal.question for goal in goals)
    ]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A goal of two records of Weft in one file of `weft bench latency`, `bandwidth` or `jacobi3d`.

    Those for which `measured` and `reference` hold are compared where `alike` is the same for both; of all
    such pairs the one with the best ratio counts.
    """

    goal: Goal
    measured: Callable[[Record], bool]
    reference: Callable[[Record], bool]
    alike: Callable[[Record], object]


def _is_staged(record: Record) -> bool:
    return "staged" in _words(record)


def _is_direct(record: Record) -> bool:
    return not _is_staged(record)


def _placement(record: Record) -> object:
    return record.host, record.size_bytes, _words(record)[-1] if record.memory == "cuda" else ""


def _over_staging(text: str, bench: str, language: str, memory: str) -> Comparison:
    question = _question(bench, default_sizes(bench, memory), memory)
    factor = 10.0 if language == "cpp" else 17.0
    limit = 1 / factor if METRICS[question.metric][1] else factor
    goal = Goal(text, question, "channel", language, limit, Reference("weft", "channel", "staged"))
    return Comparison(goal, _is_direct, _is_staged, _placement)


def _exchange(record: Record) -> bool:
    return {"communication", "strong"} <= set(_words(record)) and record.pes == 2


def _jacobi3d_case(record: Record) -> object:
    return record.host, tuple(word for word in _words(record) if word not in ("direct", "staged"))


def _jacobi3d_over_staging(text: str, language: str, memory: str) -> Comparison:
    goal = Goal(
        text, Question("jacobi3d", (0,), memory), "channel", language, 1 / 10, Reference("weft", "channel")
    )
    return Comparison(
        goal,
        lambda record: _exchange(record) and _is_direct(record),
        lambda record: _exchange(record) and _is_staged(record),
        _jacobi3d_case,
    )


def _weak_scaling(record: Record) -> bool:
    words = _words(record)
    return {"overall", "weak"} <= set(words) and words[-1] in ("ODF 1", "ODF 2") and _is_direct(record)


def _jacobi3d_scaling(text: str, memory: str) -> Comparison:
    goal = Goal(
        text,
        Question("jacobi3d", (0,), memory, pes=4),
        "channel",
        "cpp",
        1 / 0.95,
        Reference("weft", "channel"),
    )
    return Comparison(
        goal,
        lambda record: _weak_scaling(record) and record.pes == 4,
        lambda record: _weak_scaling(record) and record.pes == 1,
        lambda record: (record.host, _words(record)[-1]),
    )


def comparisons(memory: str = "cuda") -> tuple[Comparison, ...]:
    """Those that the records of sweeps and of Jacobi3D answer. A time is a fraction of the reference's."""
    return (
        _over_staging("C++ channel over host staging, latency", "latency", "cpp", memory),
        _over_staging("C++ channel over host staging, bandwidth", "bandwidth", "cpp", memory),
        _over_staging("Python channel over host staging, latency", "latency", "python", memory),
        _over_staging("Python channel over host staging, bandwidth", "bandwidth", "python", memory),
        _jacobi3d_over_staging("C++ Jacobi3D over host staging, communication", "cpp", memory),
        _jacobi3d_over_staging("Python Jacobi3D over host staging, communication", "python", memory),
        _jacobi3d_scaling("C++ Jacobi3D weak scaling, time on 4 over 1", memory),
    )


def judge_gpu(records: Sequence[Record], memory: str = "cuda") -> list[Verdict]:
    """A verdict for each goal from records of one run."""
    return [
        *judge(records, gpu_goals(memory)),
        *(_judge(comparison, records) for comparison in comparisons(memory)),
    ]


def _judge(comparison: Comparison, records: Sequence[Record]) -> Verdict:
    goal = comparison.goal
    wanted = (goal.question.bench, "weft", goal.model, goal.language, goal.question.memory)
    asked = [
        r for r in records if (r.bench, r.system, r.model, r.language, r.memory) == wanted and r.median > 0
    ]
    pairs = [
        Verdict(goal, measured, reference)
        for measured in asked
        if comparison.measured(measured)
        for reference in asked
        if comparison.reference(reference) and comparison.alike(reference) == comparison.alike(measured)
    ]
    best = min if METRICS[goal.question.metric][1] else max
    return best(pairs, key=lambda pair: pair.ratio or 0.0, default=Verdict(goal, None, None))


def _words(record: Record) -> list[str]:
    return record.path.split(", ")
