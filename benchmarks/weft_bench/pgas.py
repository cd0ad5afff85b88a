"""What ``weft bench pgas`` and ``weft bench memspeed`` do with their parsed arguments."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Iterable, Sequence

from weft_bench.errors import BenchError
from weft_bench.gpus import expect_memory, placements
from weft_bench.plot import write_plot
from weft_bench.programs import Programs
from weft_bench.question import (
    Question,
    default_sizes,
    distinct_sizes,
    parse_sizes,
)
from weft_bench.record import METRICS, Record
from weft_bench.report import by_buffers, make_console, series_of, show, size_label, value_label
from weft_bench.running import ask_question, expect_runs, launches_of
from weft_bench.schedule import Outcome
from weft_bench.system_pgas import one_sided_systems

_FETCH_ADD = "pgas_fetch_add"
#: The benches of the records that `flood_points` makes.
HALF_SIZE, PEAK = "pgas_flood_half_size", "pgas_flood_peak"
_HALF_METRIC = "half_size_bytes"


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, write files; the exit status: 0, or 1 when a system failed or nothing was there."""
    console = make_console()
    total = Outcome()
    try:
        expect_memory(arguments.memory)
        expect_runs(arguments)
        programs = Programs(arguments.programs)
        asked = questions(arguments)
        with launches_of(arguments, console) as launches:
            for number, question in enumerate(asked):
                launches.begin_part(len(asked) - number)
                systems = one_sided_systems(question.bench, arguments.memory, programs, arguments.against)
                outcome = ask_question(question, systems, arguments.runs, programs, launches)
                show(outcome, console)
                total.add(outcome)
        for line in flood_lines(total.records):
            console.print(line, highlight=False)
        if arguments.plot:
            write_plot(arguments.plot, [r for r in total.records if r.bench != _FETCH_ADD] or total.records)
    except BenchError as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    return launches.exit_status(1 if total.failed or not total.records else 0)


def questions(arguments: argparse.Namespace) -> list[Question]:
    """All that the bench asks, in order."""
    memory = arguments.memory
    is_memspeed = arguments.bench == "memspeed"
    benches = ["memspeed"] if is_memspeed else [f"pgas_{name}" for name in arguments.questions]
    result = []
    for bench in benches:
        if bench == _FETCH_ADD and memory != "host":
            continue  # its words are in host memory
        wanted = parse_sizes(arguments.sizes) if arguments.sizes and bench != _FETCH_ADD else None
        sizes = wanted or default_sizes(bench, memory)
        if 0 in sizes:
            raise BenchError("--sizes: a segment has at least one byte")
        is_distinct = bench == "memspeed" and memory == "host"
        for devices in placements(memory, arguments.placement):
            result.append(Question(bench, sizes, memory, devices=devices, distinct=is_distinct))
        if arguments.distinct and memory == "host" and "flood" in bench and distinct_sizes(sizes):
            result.append(Question(bench, distinct_sizes(sizes), memory, distinct=True))
    return result


def flood_points(records: Iterable[Record]) -> list[Record]:
    """Of each series of pgas_flood: the peak, and the size at which half of it is reached, as records.

    The size is interpolated on logarithmic axes. It is the smallest size measured if the bandwidth is more
    than half there.
    """
    series: dict[object, list[Record]] = {}
    for record in records:
        if record.bench == "pgas_flood":
            series.setdefault((series_of(record), record.path, record.memory), []).append(record)
    points = []
    for part in series.values():
        part.sort(key=lambda record: record.size_bytes)
        peak = max(part, key=lambda record: record.median)
        points.append(dataclasses.replace(peak, bench=PEAK, size_bytes=0))
        half = half_size(part)
        found = dataclasses.replace(
            points[-1], bench=HALF_SIZE, metric=_HALF_METRIC, unit=METRICS[_HALF_METRIC][0]
        )
        points.append(dataclasses.replace(found, median=half, min=half, max=half))
    return points


def half_size(records: Sequence[Record]) -> float:
    """Where `records` of one series, in the order of sizes, first reach half of their best median."""
    half = max(record.median for record in records) / 2
    before: Record | None = None
    for record in records:
        if record.median >= half:
            break
        before = record
    if before is None:
        return float(record.size_bytes)
    part = math.log(half / before.median) / math.log(record.median / before.median)
    return float(before.size_bytes * (record.size_bytes / before.size_bytes) ** part)


def flood_lines(records: Sequence[Record]) -> list[str]:
    """For people: the peak and the half size of each series of pgas_flood."""
    lines = []
    for buffers, part in by_buffers(flood_points(records)).items():
        for peak, half in zip(part[::2], part[1::2], strict=True):
            text = f"{value_label(peak.median)} {peak.unit}, half of it at {size_label(round(half.median))} B"
            lines.append(f"flood{', ' + buffers if buffers else ''}: {series_of(peak).label}: {text}")
    return lines
