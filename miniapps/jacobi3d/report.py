"""The output of jacobi3d.py: a progress bar, a table for people, records for programs."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import weft
from blocks import Timeline
from decomposition import Problem, UserError
from kernels import COMPUTE, PACK, covered
from weft_bench.provenance import provenance
from weft_bench.record import Record, write_records


@dataclass
class Result:
    """Seconds per iteration; see --help."""

    model: str
    overall: float
    compute: float
    pack: float
    checksum: int | None = None
    verdict: str = ""
    correct: bool = True

    @property
    def communication(self) -> float:
        """The time outside of compute and pack."""
        return self.overall - self.compute - self.pack

    @classmethod
    def of(cls, model: str, elapsed: float, blocks: Sequence[Timeline], iterations: int) -> Result:
        """From the clock of main and those of the blocks' devices."""
        pes = [
            covered([i for block in blocks if block.pe == pe for i in block.intervals])
            for pe in range(weft.num_pes())
        ]
        share = iterations * weft.num_pes()
        return cls(
            model=model,
            overall=elapsed / iterations,
            compute=sum(times[COMPUTE] for times in pes) / share,
            pack=sum(times[PACK] for times in pes) / share,
        )


def progress_is_visible() -> bool:
    """Whether PE 0's stderr is a terminal."""
    return sys.stderr.isatty()


class ProgressBar(weft.Chare):
    """Lives on PE 0. A block reports its iteration, and each report redraws the bar; there is no thread."""

    def __init__(self, title: str, num_iterations: int) -> None:
        columns = TextColumn("{task.description:<9}"), BarColumn(), MofNCompleteColumn()
        self._bar = Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
        self._task = self._bar.add_task(title, total=num_iterations)

    def advance(self, iterations_done: int) -> None:
        self._bar.start()
        self._bar.update(self._task, completed=iterations_done, refresh=True)

    def clear(self) -> None:
        self._bar.stop()


def describe(options: Namespace, problem: Problem) -> str:
    """One line before it starts."""
    points, blocks, pes = problem.points, problem.blocks, weft.num_pes()
    memory = ""
    if options.memory != "host":
        way = "staged through host memory" if options.host_staging else "sent from there"
        memory = f" in {options.memory} memory, faces {way}"
    return (
        f"Jacobi3D in Python: {points[0]} x {points[1]} x {points[2]} points in {blocks[0]} x {blocks[1]} x "
        f"{blocks[2]} blocks{memory}, {pes} PE{'' if pes == 1 else 's'}, ODF {options.odf}; "
        f"{options.iterations} iterations after {options.warmup}"
    )


def table(results: Sequence[Result]) -> str:
    """The same as the C++ program's."""
    titles = "ms/iteration", "overall", "compute", "pack", "communication", "checksum"
    lines = ["{:<12}{:>10}{:>10}{:>10}{:>15}   {}".format(*titles)]
    for r in results:
        times = [1e3 * seconds for seconds in (r.overall, r.compute, r.pack, r.communication)]
        lines.append(
            "{:<12}{:>10.4f}{:>10.4f}{:>10.4f}{:>15.4f}   {}".format(
                r.model, *times, "-" if r.checksum is None else f"{r.checksum:016x}"
            )
        )
    lines += [f"verify {r.model}: {r.verdict}" for r in results if r.verdict]
    return "\n".join(lines)


def write_json(path: Path, options: Namespace, results: Sequence[Result]) -> None:
    """Writes one JSON object a line, with the fields that `weft bench` writes.

    Raises:
        UserError: the file cannot be written.
    """
    here = provenance()
    way = "staged" if options.host_staging else "direct"
    points = options.size
    records = [
        Record(
            bench="jacobi3d",
            system="weft",
            model=result.model,
            language="python",
            memory=options.memory,
            path=f"{what}, {way}, {points[0]}x{points[1]}x{points[2]} points, ODF {options.odf}, "
            f"{options.iterations} iterations",
            pes=weft.num_pes(),
            size_bytes=8 * points[0] * points[1] * points[2],
            metric="time_s",
            unit="s",
            median=getattr(result, what),
            min=getattr(result, what),
            max=getattr(result, what),
            runs=1,
            warmup=options.warmup,
            git=here.git,
            host=here.host,
            date=here.date,
        )
        for result in results
        for what in ("overall", "compute", "pack", "communication")
    ]
    try:
        write_records(path, records)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
