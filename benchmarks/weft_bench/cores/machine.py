"""Which cores there are: how many, how far apart, and whether programs are given all of them."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from weft_bench.errors import BenchError
from weft_bench.process import capture
from weft_bench.programs import Programs

_SPIN_S = 0.1
#: A PE is given its core if it gets at least that part of what the others get, and all together that part of
#: what so many would get alone. A core that two hardware threads share gives each about 0.6 of it.
GIVEN = 0.8
#: What is in the `host` of a record that was taken with too few cores.
TOO_FEW = "too few cores"


@dataclasses.dataclass(frozen=True)
class Cores:
    """What `pes` processes that spin at once are given: `worth` cores together, and `evenness` is the part
    that the slowest gets of what the fastest gets."""

    pes: int
    worth: float
    evenness: float

    @property
    def are_given(self) -> bool:
        return self.worth >= GIVEN * self.pes and self.evenness >= GIVEN

    def __str__(self) -> str:
        return (
            f"{self.worth:.1f} of {self.pes} cores given, the slowest PE {self.evenness:.2f} of the fastest"
        )


def number_of_cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0))


def default_pes() -> list[int]:
    """2, 4, 8 and 16, up to the cores that are here; 2 anyway."""
    return [pes for pes in (2, 4, 8, 16) if pes <= max(2, number_of_cores())]


def spin(pes: int) -> Cores:
    """The spin test of that many processes."""
    program = Path(__file__).with_name("spin.py")
    output = capture([sys.executable, "-I", "-S", str(program), str(pes), str(_SPIN_S)], "the spin test")
    return cores_of(json.loads(output)["alone"], json.loads(output)["together"])


def cores_of(alone: int, together: Sequence[int]) -> Cores:
    """From the counts of the spin test."""
    return Cores(len(together), sum(together) / max(1, alone), min(together) / max(1, *together))


def median_cores(found: Sequence[Cores]) -> Cores:
    """Of several tests with the same number of PEs."""
    return Cores(
        found[0].pes,
        statistics.median(one.worth for one in found),
        statistics.median(one.evenness for one in found),
    )


def sentence(pes: int, cores: Cores | None) -> str:
    """Whether `pes` PEs had their cores, for people and for the `host` of records; None: no spin test."""
    if cores is None:
        return f"{TOO_FEW}: {pes} PEs on {number_of_cores()}"
    return str(cores) if cores.are_given else f"{TOO_FEW}: {cores}"


def distances_ns(programs: Programs, pes: int) -> list[float]:
    """The time of a cache line between each pair of the cores of so many PEs; empty if it cannot be told."""
    program = programs.find("core_distance")
    cores = min(pes, number_of_cores())
    if program is None or cores < 2:
        return []
    try:
        output = capture([str(program), str(cores)], "core_distance")
        return [float(json.loads(line)["value"]) for line in output.splitlines()]
    except (BenchError, ValueError, KeyError):
        return []


def distance_label(distances: Sequence[float]) -> str:
    """For people."""
    if not distances:
        return "how far its cores are apart is not known (core_distance is not built)"
    low, middle, high = min(distances), statistics.median(distances), max(distances)
    span = f"{middle:.0f} ns" if len(distances) == 1 else f"{low:.0f} to {high:.0f} ns, median {middle:.0f},"
    return f"a cache line takes {span} between cores"
