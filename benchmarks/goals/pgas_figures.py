"""The figures that global memory is held to, beside raw UCX, MPI's RMA and a device's own copies.

They are judged by files of `weft bench pgas` and `weft bench memspeed`. The half size and the peak of a flood
come from all its sizes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from goals.figures import Goal, Reference, Verdict, judge
from weft_bench.gpus import PAIR
from weft_bench.pgas import HALF_SIZE, PEAK, flood_points
from weft_bench.question import Question
from weft_bench.record import Record

LATENCY = Question("pgas_latency", (8,))
FETCH_ADD = Question("pgas_fetch_add", (8,))
HALF = Question(HALF_SIZE, (0,))
FLOOD_PEAK = Question(PEAK, (0,))
LINE = Reference("cache-line", "machine")


def _ucx(operation: str, settings: str = "") -> Reference:
    path = f"{operation}, host-host, remote"
    return Reference("ucx", "machine", f"{path}, {settings}" if settings else path)


def _mpi(operation: str) -> Reference:
    """The better of Open MPI and MPICH, in C or Python."""
    first, *others = (
        Reference(system, "mpi", operation)
        for system in ("openmpi", "mpich", "mpi4py-openmpi", "mpi4py-mpich")
    )
    return dataclasses.replace(first, others=tuple(others))


def _goal(
    text: str, question: Question, limit: float, reference: Reference, path: str, way: str = "mapped"
) -> Goal:
    memories = "host" if question is FETCH_ADD else "host-host"
    return Goal(text, question, "pgas", "cpp", limit, reference, (f"{path}, {memories}, remote, {way}",))


def _window_goal(text: str, question: Question, limit: float, path: str) -> Goal:
    """Of windows of Weft's MPI, beside those of Open MPI."""
    return Goal(text, question, "mpi", "cpp", limit, Reference("openmpi", "mpi", path), (path,))


#: What raw UCX does on memory of a program by the settings that Weft's machine has.
_REGISTERED = "Weft's settings, registered memory"

PGAS_GOALS: tuple[Goal, ...] = (
    _goal("put of 8 B beside raw UCX", LATENCY, 0.3, _ucx("put"), "put value"),
    _goal("put of 8 B beside MPI's put and flush", LATENCY, 0.2, _mpi("put"), "put value"),
    _goal("copy of 8 B between segments beside raw UCX", LATENCY, 0.3, _ucx("put"), "put"),
    _goal("copy of 8 B between segments beside MPI", LATENCY, 0.2, _mpi("put"), "put"),
    _goal("put of 8 B through UCX", LATENCY, 1.15, _ucx("put", _REGISTERED), "put value", "through UCX"),
    _goal("copy of 8 B through UCX", LATENCY, 1.15, _ucx("put", _REGISTERED), "put", "through UCX"),
    *(
        _goal(f"fetch-add on another PE's word, {sharing}", FETCH_ADD, 1.5, LINE, f"fetch-add {sharing}")
        for sharing in ("alone", "contended", "owned")
    ),
    *(
        _goal(f"flood of {operation}s, half of the peak at", HALF, 1.0, _mpi(operation), operation)
        for operation in ("put", "get")
    ),
    *(
        _goal(f"flood of {operation}s, peak", FLOOD_PEAK, 0.95, _ucx(operation), operation)
        for operation in ("put", "get")
    ),
    _window_goal("MPI_Put of 8 B and a flush beside Open MPI", LATENCY, 0.2, "put, host-host, remote"),
    _window_goal(
        "MPI_Fetch_and_op and a flush beside Open MPI", FETCH_ADD, 0.3, "fetch-add alone, host-host, remote"
    ),
)


def device_pgas_goals(memory: str) -> tuple[Goal, ...]:
    """Copies between segments, some of which are in device memory of this kind, on a pair of GPUs."""
    devices = PAIR if memory == "cuda" else ()
    large = Question("memspeed", (64 << 20,), memory, devices=devices)
    small = Question("pgas_latency", (8,), memory, devices=devices)

    def path(way: str, question: Question) -> str:
        return question.path(way)

    def goal(text: str, question: Question, way: str, limit: float, reference: Reference) -> Goal:
        return Goal(text, question, "pgas", "cpp", limit, reference, (path(way, question),))

    def own(way: str, question: Question) -> Reference:
        return Reference("weft", "pgas", path(way, question))

    between = "device-device, remote"
    return (
        *(
            Goal(
                f"{operation} of 64 MiB between windows of MPI on devices beside a plain peer copy",
                large,
                "mpi",
                "cpp",
                0.97,
                Reference("peer-copy", "machine"),
                (path(f"{operation}, {between}", large),),
            )
            for operation in ("put", "get")
        ),
        *(
            goal(
                f"{operation} of 64 MiB between devices beside a plain peer copy",
                large,
                f"{operation}, {between}, mapped",
                0.97,
                Reference("peer-copy", "machine"),
            )
            for operation in ("put", "get")
        ),
        *(
            goal(
                f"{operation} of 64 MiB, {pair}, beside host memory",
                large,
                f"{operation}, {pair}, remote, mapped",
                0.9,
                own(f"{operation}, host-host, remote, mapped", large),
            )
            for operation in ("put", "get")
            for pair in ("host-device", "device-host")
        ),
        *(
            goal(
                f"{operation} of 64 MiB between devices beside a staged one",
                large,
                f"{operation}, {between}, mapped",
                2.0,
                own(f"{operation}, {between}, staged", large),
            )
            for operation in ("put", "get")
        ),
        # The published factor, which is hoped for.
        *(
            goal(
                f"{operation} of 8 B between devices beside a staged one",
                small,
                f"{operation}, {between}, mapped",
                1 / 30,
                own(f"{operation}, {between}, staged", small),
            )
            for operation in ("put", "get")
        ),
    )


def judge_pgas(records: Sequence[Record], memory: str = "host") -> list[Verdict]:
    """A verdict for each goal from the records of one run, with one buffer in host memory."""
    goals = PGAS_GOALS if memory == "host" else device_pgas_goals(memory)
    return judge([*records, *flood_points(records)], goals)
