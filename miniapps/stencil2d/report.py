"""The output of both programs: lines for people, a record for programs."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import dataclass

from grid import Problem, UserError
from weft_bench.provenance import Provenance
from weft_bench.record import Record, write_records


@dataclass(frozen=True)
class Result:
    """`seconds`: of all timed iterations. `difference`, `checksum`: see verification; None if not wanted."""

    problem: Problem
    system: str
    model: str
    pes: int
    odf: int
    seconds: float
    difference: str | None
    checksum: str | None = None


def describe(system: str, options: Namespace, problem: Problem, pes: int, odf: int) -> str:
    """One line before it starts."""
    points, blocks = problem.points, problem.blocks
    memory = "" if options.memory == "host" else f" in {options.memory} memory"
    return (
        f"Stencil2D on {system}: {points[0]} x {points[1]} points{memory} in {blocks[0]} x {blocks[1]} "
        f"blocks, {pes} PE{'' if pes == 1 else 's'}, ODF {odf}; {options.iterations} iterations after "
        f"{options.warmup}"
    )


def report(options: Namespace, result: Result) -> str:
    """The last lines. The very last one is a JSON object, as those of the measuring programs."""
    problem, iterations = result.problem, options.iterations
    num_points = problem.points[0] * problem.points[1]
    lines = [f"time {result.seconds:.4f} s, {1e3 * result.seconds / iterations:.4f} ms per iteration"]
    if result.difference is not None:
        equal = f"all {num_points} values equal those of the serial reference to the last bit"
        lines.append(f"verify: {result.difference or equal}")
    fields = {
        "size_bytes": 8 * num_points,
        "metric": "time_s",
        "value": result.seconds,
        "pes": result.pes,
        "odf": result.odf,
        "iterations": iterations,
        "checksum": result.checksum,
        "verified": None if result.difference is None else not result.difference,
    }
    return "\n".join([*lines, json.dumps(fields)])


def write_json(options: Namespace, result: Result, here: Provenance) -> None:
    """Writes one JSON object, a record with the fields that `weft bench` writes.

    `here` is that of the beginning: a process that is pinned sees one core only.

    Raises:
        UserError: the file cannot be written.
    """
    rows, columns = result.problem.points
    record = Record(
        bench="stencil2d",
        system=result.system,
        model=result.model,
        language="python",
        memory=options.memory,
        path=f"{options.scaling}, {rows}x{columns} points, ODF {result.odf}, {options.iterations} iterations",
        pes=result.pes,
        size_bytes=8 * rows * columns,
        metric="time_s",
        unit="s",
        median=result.seconds,
        min=result.seconds,
        max=result.seconds,
        runs=1,
        warmup=options.warmup,
        git=here.git,
        host=here.host,
        date=here.date,
    )
    try:
        write_records(options.json, [record])
    except OSError as error:
        raise UserError(f"cannot write {options.json}: {error.strerror}") from None
