"""``weft bench jacobi3d``: the mini-app Jacobi3D over PEs, overdecomposition, models and ways of its faces.

A *case* is one way to run it; cases take turns, each run a fresh job, and a case's records are the medians of
its runs: overall, compute, pack and communication seconds of an iteration.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from weft_bench.errors import BenchError
from weft_bench.gpus import gpu_names
from weft_bench.launches import Launches
from weft_bench.process import capture
from weft_bench.programs import Programs
from weft_bench.provenance import Provenance
from weft_bench.record import Record, read_records
from weft_bench.system_weft import run_command
from weft_bench.turns import take_turns

PARTS = ("overall", "compute", "pack", "communication")
LANGUAGES = ("cpp", "python")
MODELS = ("channel", "messaging", "queued", "graph")
#: Those whose faces the streams of devices exchange.
QUEUED_MODELS = ("queued", "graph")
SCALINGS = ("weak", "strong")
#: The name of a way of the faces in records, by the value of the program's --staging. "direct": not staged.
WAYS = {"device": "direct", "host": "staged"}
#: Points along each dimension: of a PE's share (weak), of the whole grid (strong).
DEFAULT_POINTS = {
    "host": {"weak": 96, "strong": 128},
    "emulated": {"weak": 32, "strong": 48},
    "cuda": {"weak": 768, "strong": 1536},
}
#: Of 3.6 billion points one takes some 20 ms on one GPU.
DEFAULT_ITERATIONS = {"host": 100, "emulated": 100, "cuda": 50}
#: A run that takes longer hangs.
TIMEOUT_S = 600.0

Triple = tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class Case:
    """One way to run the program. `staging` is "" for host memory, else a key of WAYS."""

    language: str
    model: str
    memory: str
    staging: str
    scaling: str
    pes: int
    odf: int
    points: Triple
    iterations: int
    warmup: int

    @property
    def way(self) -> str:
        """ "direct" (not staged), "staged", or "" for host memory."""
        return WAYS[self.staging] if self.staging else ""

    @property
    def label(self) -> str:
        """For people."""
        language = {"cpp": "C++", "python": "Python"}[self.language]
        way = f", {self.way}" if self.way else ""
        pes = "1 PE" if self.pes == 1 else f"{self.pes} PEs"
        return f"{language} {self.model}{way}, {self.scaling}, {pes}, ODF {self.odf}"

    @property
    def size_bytes(self) -> int:
        """Of the grid."""
        return 8 * self.points[0] * self.points[1] * self.points[2]

    def path(self, part: str) -> str:
        """The path of the record of one of PARTS."""
        grid = "x".join(map(str, self.points))
        words = (part, self.way, self.scaling, f"{grid} points", f"ODF {self.odf}")
        return ", ".join(word for word in words if word)

    def arguments(self, json_file: Path) -> list[str]:
        """The command line of the program."""
        words = ["--size", *map(str, self.points), "--odf", str(self.odf), "--model", self.model]
        words += ["--iterations", str(self.iterations), "--warmup", str(self.warmup)]
        words += ["--memory", self.memory, "--json", str(json_file), "--no-checksum"]
        return words + (["--staging", self.staging] if self.staging else [])


@dataclasses.dataclass
class Outcome:
    """Records by case and part, the cases that failed with why, and why there were fewer runs, if so."""

    records: dict[tuple[Case, str], Record] = dataclasses.field(default_factory=dict)
    failed: dict[Case, str] = dataclasses.field(default_factory=dict)
    stopped: list[str] = dataclasses.field(default_factory=list)

    @property
    def cases(self) -> list[Case]:
        """Those with records, as they were asked for."""
        return list(dict.fromkeys(case for case, _ in self.records))

    def seconds(self, case: Case, part: str) -> float:
        return self.records[case, part].median

    def overhead_of_staging(self, case: Case) -> float | None:
        """The communication time of the staged case over that of `case`, which is not staged.

        None if the staged case was not measured, or if there is only one PE.
        """
        staged = dataclasses.replace(case, staging="host")
        if case.way != "direct" or case.pes == 1 or (staged, "communication") not in self.records:
            return None
        return _ratio(self.seconds(staged, "communication"), self.seconds(case, "communication"))

    def efficiency(self, case: Case) -> float | None:
        """Of its scaling, from the same on one PE."""
        alone = [c for c in self.cases if c.pes == 1 and _same_but_pes(c, case)]
        if not alone:
            return None
        ideal = self.seconds(alone[0], "overall") / (case.pes if case.scaling == "strong" else 1)
        return _ratio(ideal, self.seconds(case, "overall"))


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None


def _same_but_pes(a: Case, b: Case) -> bool:
    return dataclasses.replace(a, pes=b.pes, points=b.points) == b


def grown(points: Triple, pes: int) -> Triple:
    """`points` for each of `pes` PEs together: doubled along x, y, z in turn, what is left along x."""
    result = list(points)
    dimension = 0
    while pes > 1:
        factor = 2 if pes % 2 == 0 else pes
        result[dimension % 3] *= factor
        dimension += 1
        pes //= factor
    return result[0], result[1], result[2]


def default_pes(memory: str) -> tuple[int, ...]:
    """1, 2, 4, ... up to the GPUs, or the cores, that are here."""
    most = len(gpu_names()) if memory == "cuda" else len(os.sched_getaffinity(0))
    return tuple(pes for pes in (1, 2, 4, 8) if pes <= most)


def cases(
    *,
    memory: str,
    pes: Iterable[int],
    odf: Sequence[int],
    scalings: Sequence[str],
    languages: Sequence[str],
    models: Sequence[str],
    stagings: Sequence[str],
    size: int | None,
    iterations: int,
    warmup: int,
) -> Iterator[Case]:
    """Every combination; `size` as DEFAULT_POINTS where it is None.

    Host memory is staged nowhere. QUEUED_MODELS are for faces that go from device memory to device memory.
    """
    for scaling in scalings:
        edge = size or DEFAULT_POINTS[memory][scaling]
        for number in pes:
            points = (edge,) * 3 if scaling == "strong" else grown((edge,) * 3, number)
            for factor in odf:
                for language in languages:
                    for model in models:
                        for staging in stagings if memory != "host" else ("",):
                            if model in QUEUED_MODELS and staging != "device":
                                continue
                            yield Case(
                                language,
                                model,
                                memory,
                                staging,
                                scaling,
                                number,
                                factor,
                                points,
                                iterations,
                                warmup,
                            )


def program(case: Case, programs: Programs) -> Path:
    """The program in the case's language. Raises BenchError when it is not there."""
    return programs.need("jacobi3d" if case.language == "cpp" else "jacobi3d.py")


def run(case: Case, programs: Programs) -> dict[str, float]:
    """Seconds per iteration of each of PARTS, from one job. Raises BenchError, with what it said."""
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        file = Path(folder) / "times.json"
        command = [*run_command(case.pes, program(case, programs)), *case.arguments(file)]
        capture(command, case.label, timeout_s=TIMEOUT_S)
        found = {record.path.split(",")[0]: record.median for record in read_records(file)}
    if set(found) != set(PARTS):
        raise BenchError(f"{case.label} wrote records of {sorted(found)} instead of {', '.join(PARTS)}")
    return found


def measure(
    wanted: Sequence[Case],
    runs: int,
    programs: Programs,
    provenance: Provenance,
    launches: Launches | None = None,
) -> Outcome:
    """Run every case `runs` times, in turns; one that fails once is run no further.

    `launches` hears of each run, keeps the records after each turn, and may end the turns early.
    """
    launches = launches or Launches()
    taken = take_turns(
        wanted,
        runs,
        launches,
        lambda case: run(case, programs),
        lambda found: launches.keep(_records(found, provenance).values()),
    )
    outcome = Outcome(failed=taken.failed, stopped=taken.stopped)
    outcome.records = _records(taken.results, provenance)
    launches.keep(outcome.records.values())
    return outcome


def _records(
    found: Mapping[Case, Sequence[dict[str, float]]], provenance: Provenance
) -> dict[tuple[Case, str], Record]:
    return {
        (case, part): _record(case, part, [run_times[part] for run_times in times], provenance)
        for case, times in found.items()
        if times
        for part in PARTS
    }


def _record(case: Case, part: str, values: Sequence[float], provenance: Provenance) -> Record:
    return Record(
        bench="jacobi3d",
        system="weft",
        model=case.model,
        language=case.language,
        memory=case.memory,
        path=case.path(part),
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
