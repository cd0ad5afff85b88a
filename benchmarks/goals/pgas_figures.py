"""The figures that global memory is held to in host memory, beside raw UCX and MPI's RMA in the same run.

They are judged by files of `weft bench pgas`: the half size and the peak of a flood come from all its sizes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from goals.figures import Goal, Reference, Verdict, judge
from weft.bench.pgas import HALF_SIZE, PEAK, flood_points
from weft.bench.question import Question
from weft.bench.record import Record

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
)


def judge_pgas(records: Sequence[Record]) -> list[Verdict]:
    """A verdict for each goal from the records of one run of `weft bench pgas`, with one buffer."""
    return judge([*records, *flood_points(records)], PGAS_GOALS)
