"""What is measured: operations and sizes, as points.h explains them, and what the programs print."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Sequence

from weft_bench.errors import BenchError
from weft_bench.process import tail
from weft_bench.system import Reading

_COLLECTIVE_SIZES = (8, 1024, 32768, 1 << 20)
#: The sizes of each operation that are measured by default.
OPERATIONS: dict[str, tuple[int, ...]] = {
    "windows": (8, 512, 4096, 65536, 1 << 20),
    "all_to_one": (8,),
    "solver_step": (8192,),
    "barrier": (0,),
    "broadcast": _COLLECTIVE_SIZES,
    "reduce": _COLLECTIVE_SIZES,
    "all_reduce": _COLLECTIVE_SIZES,
    "all_gather": _COLLECTIVE_SIZES,
    "all_to_all": _COLLECTIVE_SIZES,
    "reduce_scatter": _COLLECTIVE_SIZES,
    "scan": _COLLECTIVE_SIZES,
}
_RATES = ("windows", "all_to_one")


@dataclasses.dataclass(frozen=True)
class Point:
    """An operation with a size; of collectives, the block of one PE."""

    operation: str
    size_bytes: int

    @property
    def bench(self) -> str:
        """As records name it."""
        return f"cores_{self.operation}"

    @property
    def metric(self) -> str:
        return "rate_Mps" if self.operation in _RATES else "time_us"

    def argument(self) -> str:
        """As the measuring programs take it on their command line."""
        return f"{self.operation}:{self.size_bytes}"


def points_of(operations: Sequence[str], sizes: Sequence[int] | None) -> list[Point]:
    """Every operation with `sizes`, or with its own where it has one size only or `sizes` is None."""
    if sizes is not None and any(size < 8 or size % 8 for size in sizes):
        raise BenchError("--sizes: multiples of 8 bytes, because reductions add doubles")
    return [
        Point(operation, size)
        for operation in operations
        for size in (OPERATIONS[operation] if sizes is None or len(OPERATIONS[operation]) == 1 else sizes)
    ]


def read_figures(output: str, points: Sequence[Point], what: str) -> tuple[dict[Point, Reading], str]:
    """The figures in the output of a program, one for each point; and which MPI library it names."""
    found: dict[Point, Reading] = {}
    library = ""
    for text in output.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            line = json.loads(text) if text.startswith("{") else {}
            library = line.get("library", library)
            if "operation" in line:
                size_bytes = int(line["size_bytes"])
                reading = Reading(size_bytes, float(line["value"]), int(line["warmup"]))
                found[Point(line["operation"], size_bytes)] = reading
    if missing := [point.argument() for point in points if point not in found]:
        raise BenchError(f"{what} printed no figure of {', '.join(missing)}; its last lines:\n{tail(output)}")
    return {point: found[point] for point in points}, library
