"""``weft bench heat3d``: heat conduction in 3D with a one-sided and a two-sided exchange of faces.

A *case* is one way to run the mini-app heat3d. Cases take turns, each run a fresh job. A *window* is the time
of two steps, in microseconds; it slides by one step. Figures are medians over runs. A histogram holds all
windows of all runs.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft_bench.errors import BenchError
from weft_bench.launches import Launches
from weft_bench.process import capture
from weft_bench.programs import Programs
from weft_bench.provenance import Provenance
from weft_bench.record import Record
from weft_bench.steadiness import Steadiness
from weft_bench.system_weft import run_command
from weft_bench.turns import take_turns

#: The two-sided and the one-sided exchange.
EXCHANGES = ("channel", "pgas")
DEFAULT_SIZES = (8, 16, 32, 64, 128)
#: Fewer steps for larger bodies: a run takes a second or so.
MOST_POINT_STEPS = 400_000_000
MOST_STEPS = 10_000
LEAST_STEPS = 200
TIMEOUT_S = 600.0
#: The figures of a run by name: the lower and the upper quantile whose distance it is; None for the median.
FIGURES: dict[str, tuple[float, float] | None] = {
    "median": None,
    "25 % to 75 %": (0.25, 0.75),
    "5 % to 95 %": (0.05, 0.95),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One way to run the program."""

    exchange: str
    memory: str
    pes: int
    odf: int
    size: int
    steps: int
    warmup: int

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.exchange}, {self.size}^3 points, {self.pes} PEs, ODF {self.odf}"

    @property
    def size_bytes(self) -> int:
        """Of the temperatures."""
        return int(8 * self.size**3)

    def path(self, figure: str) -> str:
        """The path of the record of one of FIGURES."""
        points = "x".join([str(self.size)] * 3)
        return f"two steps, {figure}, {points} points, ODF {self.odf}, {self.steps} steps"

    def arguments(self, json_file: Path) -> list[str]:
        """The command line of the program."""
        words = ["--exchange", self.exchange, "--memory", self.memory, "--odf", self.odf, "--size", self.size]
        words += ["--steps", self.steps, "--warmup", self.warmup, "--json", json_file, "--pin"]
        return [str(word) for word in words]


@dataclasses.dataclass(frozen=True)
class Run:
    """The windows of all PEs of one job, sorted, and the distance of its cores (None: not known)."""

    windows_us: tuple[float, ...]
    distance_ns: float | None = None

    def figure(self, name: str) -> float:
        """One of FIGURES, in microseconds."""
        parts = FIGURES[name]
        if parts is None:
            return self.quantile(0.5)
        return self.quantile(parts[1]) - self.quantile(parts[0])

    def quantile(self, part: float) -> float:
        """By linear interpolation between the windows."""
        place = part * (len(self.windows_us) - 1)
        below = int(place)
        above = min(below + 1, len(self.windows_us) - 1)
        return self.windows_us[below] + (place - below) * (self.windows_us[above] - self.windows_us[below])


@dataclasses.dataclass
class Outcome:
    """Runs by case, records by case and figure, failed cases with why, and why there were fewer runs.

    `runs` are those at the distance of the cores that most runs had. `turns` are all of them, in their order.
    """

    turns: dict[Case, list[Run]] = dataclasses.field(default_factory=dict)
    runs: dict[Case, list[Run]] = dataclasses.field(default_factory=dict)
    records: dict[tuple[Case, str], Record] = dataclasses.field(default_factory=dict)
    failed: dict[Case, str] = dataclasses.field(default_factory=dict)
    stopped: list[str] = dataclasses.field(default_factory=list)

    @property
    def pairs(self) -> list[tuple[Case, Case]]:
        """The two-sided and the one-sided case of each size that has both."""
        found = []
        for case in self.runs:
            other = dataclasses.replace(case, exchange="pgas")
            if case.exchange == "channel" and other in self.runs:
                found.append((case, other))
        return found

    def one_sided_wins(self, pair: tuple[Case, Case], figure: str) -> tuple[int, int]:
        """In how many turns the one-sided run had the lower figure, and of how many.

        Turns in which the cores were at different distances for the two runs do not count.
        """
        both = zip(self.turns[pair[0]], self.turns[pair[1]], strict=False)
        turns = [(two, one) for two, one in both if two.distance_ns == one.distance_ns]
        return sum(one.figure(figure) < two.figure(figure) for two, one in turns), len(turns)


def steps_of(size: int) -> int:
    """How many steps a body of that size is given."""
    return max(LEAST_STEPS, min(MOST_STEPS, MOST_POINT_STEPS // size**3))


def cases(
    *, memory: str, pes: int, odf: int, sizes: Iterable[int], steps: int | None, warmup: int
) -> Iterator[Case]:
    """Both exchanges of each size, next to one another."""
    for size in sizes:
        for exchange in EXCHANGES:
            yield Case(exchange, memory, pes, odf, size, steps or steps_of(size), warmup)


def run(case: Case, programs: Programs) -> Run:
    """One job. Raises BenchError, with what it said."""
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        file = Path(folder) / "times.json"
        command = [*run_command(case.pes, programs.need("heat3d")), *case.arguments(file)]
        capture(command, case.label, timeout_s=TIMEOUT_S)
        windows = json.loads(file.read_text(encoding="utf-8"))["two_steps_us"]
    found = sorted(float(window) for pe in windows for window in pe)
    if len(windows) != case.pes or len(found) != case.pes * (case.steps - 2):
        raise BenchError(f"{case.label} wrote {len(found)} windows of {len(windows)} PEs")
    return Run(tuple(found))


def measure(
    wanted: Sequence[Case],
    runs: int,
    programs: Programs,
    provenance: Provenance,
    launches: Launches | None = None,
    distance: Callable[[], float | None] = lambda: None,
) -> Outcome:
    """Run every case `runs` times, in turns. A run during which the cores moved is made again."""
    launches = launches or Launches()
    steadiness = Steadiness(distance)

    def run_steadily(case: Case) -> Run:
        found, number = steadiness.run(lambda: run(case, programs))
        known = steadiness.distances_ns
        return dataclasses.replace(found, distance_ns=known[number] if number is not None and known else None)

    taken = take_turns(
        wanted,
        runs,
        launches,
        run_steadily,
        lambda found: launches.keep(_records(comparable(found), provenance).values()),
    )
    outcome = Outcome(failed=taken.failed, stopped=taken.stopped)
    outcome.turns = taken.results
    outcome.runs = comparable(taken.results)
    outcome.records = _records(outcome.runs, provenance)
    launches.keep(outcome.records.values())
    return outcome


def comparable(turns: Mapping[Case, Sequence[Run]]) -> dict[Case, list[Run]]:
    """The runs at the distance of the cores that most runs had; cases without one are left out."""
    counts = Counter(one.distance_ns for runs in turns.values() for one in runs)
    if not counts:
        return {}
    lead = counts.most_common(1)[0][0]
    found = {case: [one for one in runs if one.distance_ns == lead] for case, runs in turns.items()}
    return {case: runs for case, runs in found.items() if runs}


def histogram(runs: Sequence[Run], edges_us: Sequence[float]) -> list[int]:
    """How many windows of all runs lie from each edge to the next. Those outside are not counted."""
    counts = [0] * (len(edges_us) - 1)
    width = (edges_us[-1] - edges_us[0]) / len(counts)
    for one in runs:
        for window in one.windows_us:
            if edges_us[0] <= window < edges_us[-1]:
                counts[min(int((window - edges_us[0]) / width), len(counts) - 1)] += 1
    return counts


def edges(cases: Sequence[Sequence[Run]], bins: int = 60) -> list[float]:
    """Equal bins from the least window to far above most windows of each case: 6 times the distance of its
    quartiles above the upper one. Windows that another process delayed may lie beyond."""
    low = min(one.windows_us[0] for runs in cases for one in runs)
    high = max(statistics.median(_far_above_most(one) for one in runs) for runs in cases)
    high = high if high > low else low + 1.0
    return [low + (high - low) * i / bins for i in range(bins + 1)]


def _far_above_most(one: Run) -> float:
    upper = one.quantile(0.75)
    return upper + 6 * (upper - one.quantile(0.25))


def summary(outcome: Outcome, provenance: Provenance) -> Iterator[dict[str, Any]]:
    """For each case the histogram of its windows and the figures of each run."""
    for pair in outcome.pairs:
        bins = edges([outcome.runs[case] for case in pair])
        for case in pair:
            runs = outcome.runs[case]
            yield {
                **dataclasses.asdict(case),
                **dataclasses.asdict(provenance),
                "windows": sum(len(one.windows_us) for one in runs),
                "bin_edges_us": [round(edge, 3) for edge in bins],
                "counts": histogram(runs, bins),
                "runs": [_run_summary(one) for one in runs],
            }


def _run_summary(one: Run) -> dict[str, float | None]:
    quantiles = {
        f"q{round(100 * part):02}_us": one.quantile(part) for part in (0.0, 0.05, 0.25, 0.5, 0.75, 0.95)
    }
    return {
        **{name: round(value, 3) for name, value in quantiles.items()},
        "most_us": one.windows_us[-1],
        "core_distance_ns": one.distance_ns,
    }


def _records(found: Mapping[Case, Sequence[Run]], provenance: Provenance) -> dict[tuple[Case, str], Record]:
    return {
        (case, name): _record(case, name, [1e-6 * one.figure(name) for one in runs], provenance)
        for case, runs in found.items()
        if runs
        for name in FIGURES
    }


def _record(case: Case, figure: str, values: Sequence[float], provenance: Provenance) -> Record:
    return Record(
        bench="heat3d",
        system="weft",
        model=case.exchange,
        language="cpp",
        memory=case.memory,
        path=case.path(figure),
        pes=case.pes,
        size_bytes=case.size_bytes,
        metric="time_s",
        unit="s",
        median=statistics.median(values),
        min=min(values),
        max=max(values),
        runs=len(values),
        warmup=case.warmup,
        git=provenance.git,
        host=provenance.host,
        date=provenance.date,
    )
