"""The smallest tasks that programs of Task Bench run well: METG, the minimum effective task granularity.

    metg.py --system weft='weft run -n {pes} task_bench_chares' --system mpi='mpiexec -n {pes} nonblock'

Runs the command of each system on task graphs with shorter and shorter tasks, all systems in turn. A command
gets the options of Task Bench's core library, and prints what the core prints; "{pes}" in it is the number of
PEs. The granularity of a task is the elapsed time times the PEs, divided by the tasks. The efficiency is the
rate of floating-point operations, divided by the best rate of any system on the same pattern. METG(50 %) is
the granularity at which the efficiency falls below one half for good, between two sizes: less is better.
Times are medians of --runs. A system of which a launch fails or hangs is left out from then on.

--quick launches a graph once if that launch is efficient: long tasks are only needed for the best rate. That
rate is then one of a single launch, which a boosted clock can raise, and METG of all systems with it: no
figures for a record. With --minutes the last graphs may be missing, and with them METG.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import re
import shlex
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from weft_bench.arguments import minutes
from weft_bench.errors import BenchError
from weft_bench.plot import new_figure, save
from weft_bench.process import TIMEOUT_S, capture
from weft_bench.provenance import provenance

PATTERNS = ("stencil_1d", "fft", "tree", "random_nearest", "spread")
THRESHOLD = 0.5
#: A system is not asked for shorter tasks once it is less efficient.
_LEAST_EFFICIENCY = 0.25
#: With --quick a graph is not launched again if it is more efficient. Disturbances only lower the efficiency.
_CLEAR_EFFICIENCY = 0.8
_RADIX = 3
_PERIOD = 3
_ELAPSED = re.compile(r"^Elapsed Time (\S+) seconds$", re.MULTILINE)
_TASKS = re.compile(r"^Total Tasks (\d+)$", re.MULTILINE)
_FLOPS = re.compile(r"^Total FLOPs (\d+)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Point:
    """A system on one pattern with tasks of one length."""

    system: str
    pattern: str
    iterations: int
    tasks: int
    elapsed_s: float
    granularity_us: float
    flops_per_s: float
    launches: int


@dataclasses.dataclass(frozen=True)
class Answer:
    """What one launch printed."""

    tasks: int
    flops: int
    elapsed_s: float


def graph_options(pattern: str, width: int, iterations: int, options: argparse.Namespace) -> list[str]:
    words = ["-type", pattern, "-steps", str(options.steps), "-width", str(width)]
    words += ["-iter", str(iterations), "-output", str(options.output_bytes)]
    if options.imbalance > 0:
        words += ["-kernel", "load_imbalance", "-imbalance", str(options.imbalance)]
    else:
        words += ["-kernel", "compute_bound"]
    radix = min(_RADIX, width)
    words += ["-radix", str(radix)]
    if pattern == "spread":  # the core refuses longer ones
        words += ["-period", str(min(_PERIOD, -(-width // radix)))]
    return words


def ask(system: str, command: str, graph: Sequence[str], options: argparse.Namespace) -> Answer:
    """Launches a system once. Raises BenchError."""
    words = [*shlex.split(command.replace("{pes}", str(options.pes))), *graph]
    output = capture(words, f"{system} ({shlex.join(words)})", timeout_s=options.timeout)
    found = [pattern.search(output) for pattern in (_TASKS, _FLOPS, _ELAPSED)]
    tasks, flops, elapsed = (match and match.group(1) for match in found)
    if tasks is None or flops is None or elapsed is None:
        raise BenchError(f"{system}: `{shlex.join(words)}` printed no times of Task Bench")
    return Answer(int(tasks), int(flops), float(elapsed))


class Measurement:
    """All systems on one pattern, from long tasks to short ones."""

    def __init__(self, pattern: str, systems: dict[str, str], options: argparse.Namespace) -> None:
        self._pattern = pattern
        self._systems = systems
        self._options = options
        self._peak = 0.0  # the best rate of all systems so far
        #: What went wrong, by system.
        self.errors: dict[str, BenchError] = {}

    def points(self, deadline_s: float) -> Iterator[Point]:
        """Begins no launch after the deadline, which time.monotonic() counts."""
        left = list(self._systems)
        iterations = self._options.iterations
        while iterations >= 1 and left:
            efficient = []
            for system in left:
                point = self._point(system, iterations, deadline_s)
                if point is None:
                    continue
                if point.flops_per_s >= _LEAST_EFFICIENCY * self._peak:
                    efficient.append(system)
                yield point
            left = efficient
            iterations //= 2

    def _point(self, system: str, iterations: int, deadline_s: float) -> Point | None:
        """None if the system failed, or there was no time."""
        options = self._options
        graph = graph_options(self._pattern, options.pes * options.columns_per_pe, iterations, options)
        answers: list[Answer] = []
        try:
            while len(answers) < options.runs and time.monotonic() < deadline_s:
                answers.append(ask(system, self._systems[system], graph, options))
                rate = answers[-1].flops / answers[-1].elapsed_s
                self._peak = max(self._peak, rate)
                if options.quick and rate >= _CLEAR_EFFICIENCY * self._peak:
                    break
        except BenchError as error:
            self.errors[system] = error
            print(f"{self._pattern} {iterations}: {error}", file=sys.stderr, flush=True)
            return None
        if not answers:
            return None
        tasks, flops = answers[-1].tasks, answers[-1].flops
        elapsed_s = statistics.median(answer.elapsed_s for answer in answers)
        granularity_us = elapsed_s * options.pes / tasks * 1e6
        print(f"{self._pattern} {iterations} {system}: {granularity_us:.2f} us", file=sys.stderr, flush=True)
        return Point(
            system,
            self._pattern,
            iterations,
            tasks,
            elapsed_s,
            granularity_us,
            flops / elapsed_s,
            len(answers),
        )


def metg_us(points: Sequence[tuple[float, float]]) -> float | None:
    """Where the efficiency falls below the threshold for good. Points are (granularity, efficiency).

    Long tasks come first. None if it does not fall: then even the shortest tasks were long enough, or the
    longest too short.
    """
    if not points or points[-1][1] >= THRESHOLD:
        return None
    for (longer, above), (shorter, below) in reversed(list(itertools.pairwise(points))):
        if above >= THRESHOLD > below:
            part = (above - THRESHOLD) / (above - below)
            return math.exp(math.log(longer) + part * (math.log(shorter) - math.log(longer)))
    return None


def curve(points: Sequence[Point], system: str, pattern: str) -> list[tuple[float, float]]:
    of_pattern = [point for point in points if point.pattern == pattern]
    peak = max((point.flops_per_s for point in of_pattern), default=0.0)
    return [(p.granularity_us, p.flops_per_s / peak) for p in of_pattern if p.system == system]


def draw(path: Path, points: Sequence[Point], patterns: Sequence[str], title: str) -> None:
    columns = min(3, len(patterns))
    rows = -(-len(patterns) // columns)
    figure = new_figure(5.0 * columns, 4.0 * rows)
    figure.suptitle(title, fontsize=9)
    for number, pattern in enumerate(patterns):
        axes = figure.add_subplot(rows, columns, number + 1)
        for system in dict.fromkeys(point.system for point in points):
            line = curve(points, system, pattern)
            axes.plot(
                [x for x, _ in line], [100 * y for _, y in line], marker="o", markersize=3, label=system
            )
        axes.axhline(100 * THRESHOLD, color="grey", linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_title(pattern, fontsize=9)
        axes.set_xlabel("granularity of a task, us")
        axes.set_ylabel("efficiency, %")
        axes.grid(True, alpha=0.4)
        axes.legend(fontsize=7)
    save(figure, path)


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pes", type=int, default=2, metavar="N")
    parser.add_argument("--system", action="append", required=True, metavar="NAME=COMMAND", dest="systems")
    parser.add_argument("--patterns", default=",".join(PATTERNS), help="separated by commas (%(default)s)")
    parser.add_argument("--columns-per-pe", type=int, default=1, metavar="N", help="overdecomposition")
    parser.add_argument(
        "--steps", type=int, default=1000, metavar="N", help="height of a graph (%(default)s)"
    )
    parser.add_argument(
        "--iterations", type=int, default=65536, metavar="N", help="of the longest task (%(default)s)"
    )
    parser.add_argument("--output-bytes", type=int, default=16, metavar="N", help="of a task (%(default)s)")
    parser.add_argument("--imbalance", type=float, default=0.0, metavar="X", help="0 to 2 (%(default)s)")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="of each graph (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="efficient graphs are launched once")
    parser.add_argument("--minutes", type=minutes, metavar="M", help="start no launch after that time")
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_S, metavar="S", help="of a launch (%(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="one object per line")
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    options = parser.parse_args(words)
    wrong = [entry for entry in options.systems if not re.match(r"[^=]+=.", entry)]
    if wrong:
        parser.error(f"--system {wrong[0]}: give NAME=COMMAND")
    names = [entry.partition("=")[0] for entry in options.systems]
    if len(set(names)) < len(names):
        parser.error("two --system have one name")
    if min(options.runs, options.steps, options.iterations) < 1:
        parser.error("--runs, --steps and --iterations: 1 at least")
    if options.pes * options.columns_per_pe < 2:
        parser.error("the patterns need two columns at least: raise --pes or --columns-per-pe")
    return options


def compare(options: argparse.Namespace, file: TextIO | None) -> dict[str, BenchError]:
    """Measures, prints and draws. Each line goes to the file at once. Returns what went wrong, by system."""
    systems = dict(entry.split("=", 1) for entry in options.systems)
    patterns = options.patterns.split(",")
    about = dataclasses.asdict(provenance())
    shared = {"pes": options.pes, "columns_per_pe": options.columns_per_pe, "imbalance": options.imbalance}
    shared |= {"output_bytes": options.output_bytes, "steps": options.steps, "runs": options.runs}

    def record(line: dict[str, object]) -> None:
        if file is not None:
            print(json.dumps({**line, **shared, **about}), file=file, flush=True)

    deadline_s = math.inf if options.minutes is None else time.monotonic() + 60 * options.minutes
    points: list[Point] = []
    errors: dict[str, BenchError] = {}
    for pattern in patterns:
        working = {system: command for system, command in systems.items() if system not in errors}
        measurement = Measurement(pattern, working, options)
        for point in measurement.points(deadline_s):
            points.append(point)
            record({"bench": "task-bench", **dataclasses.asdict(point)})
        errors |= measurement.errors
    print(f"METG(50 %) in us, {options.pes} PEs, {options.columns_per_pe} columns per PE")
    print("".join(f"{name:>16}" for name in ("", *systems)))
    for pattern in patterns:
        found = {system: metg_us(curve(points, system, pattern)) for system in systems}
        print(
            "".join(
                [f"{pattern:>16}", *(f"{value:16.2f}" if value else f"{'-':>16}" for value in found.values())]
            )
        )
        for system, value in found.items():
            record({"bench": "metg", "system": system, "pattern": pattern, "metg_us": value})
    if options.plot is not None:
        draw(options.plot, points, patterns, f"{about['host']}; {about['date']}; {options.pes} PEs")
    return errors


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    if options.json is None:
        errors = compare(options, None)
    else:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        with options.json.open("w", encoding="utf-8") as file:
            errors = compare(options, file)
    for error in errors.values():
        print(f"metg: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
