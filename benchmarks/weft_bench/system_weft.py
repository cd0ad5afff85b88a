"""Weft itself: the measuring programs under `weft run`."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from weft_bench.process import capture, read_measurements
from weft_bench.programs import Programs, checkout
from weft_bench.question import STAGED_RATE, Question, Step, device_rate
from weft_bench.system import Reading, Series, System
from weft_bench.system_gpu import KERNEL_PROGRAM, KERNEL_WAYS, why_no_kernels

_CPP_US = 0.2
_PYTHON_US = 1.5
#: What a message of device memory costs at least, on any path.
_DEVICE_US = 10.0
_STAGED_US = 40.0


#: What `--model` takes.
MODELS = ("machine", "channel", "messaging", "pgas", "mpi")


@dataclasses.dataclass(frozen=True)
class Weft:
    """One model in one language; `program` is the file name of its measuring program.

    `environment` are the settings that make messages take `path`.
    """

    model: str
    language: str
    program: str
    programs: Programs
    path: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()  # of the program

    @property
    def series(self) -> Series:
        return Series("weft", self.model, self.language, self.path)

    def absent(self, question: Question) -> str | None:
        if self.program == KERNEL_PROGRAM and (reason := why_no_kernels(question, self.options)) is not None:
            return reason
        if self.language == "python" and importlib.util.find_spec("weft._core") is None:
            return "the compiled part of weft is not here: pip install weft, or make setup in a checkout"
        if self.programs.find(self.program) is None:
            return self.programs.advice(self.program)
        return None

    def run(self, question: Question) -> list[Reading]:
        steps = self._steps(question)
        command = run_command(question.pes, self.programs.need(self.program))
        command += [question.bench, *(step.argument() for step in steps), "--memory", question.memory]
        command += self.options
        environment = {**dict(self.environment), **device_environment(question.devices)}
        output = capture(command, self.series.label, environment, question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)

    def _steps(self, question: Question) -> list[Step]:
        if question.memory == "host":
            return question.steps(_CPP_US if self.language == "cpp" else _PYTHON_US)
        if self.path == "staged":
            return question.steps(_STAGED_US, STAGED_RATE)
        return question.steps(_DEVICE_US, device_rate(question.memory))


def run_command(pes: int, *program: Path) -> list[str]:
    """The front of a command that runs `program` on `pes` PEs of this host."""
    return [sys.executable, "-m", "weft", "run", "-n", str(pes), *map(str, program)]


def device_environment(devices: Sequence[int]) -> dict[str, str]:
    """What gives each PE its GPU."""
    return {"WEFT_GPUS": ",".join(map(str, devices))} if devices else {}


@dataclasses.dataclass(frozen=True)
class Mpi4pyWeft:
    """mpi4py on Weft's MPI library: the optimised build of tools/mpi4py_suite.py."""

    programs: Programs

    @property
    def series(self) -> Series:
        return Series("weft", "mpi", "python", "mpi4py")

    def absent(self, question: Question) -> str | None:
        if question.memory not in ("host", "cuda"):
            return f"its measuring program has no {question.memory} buffers"
        if _mpi4py_site() is None:
            return "tools/mpi4py_suite.py --build-optimized, in a checkout, builds mpi4py for Weft"
        return None if self.programs.find(_MPI4PY_PROGRAM) else self.programs.advice(_MPI4PY_PROGRAM)

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(0.7) if question.memory == "host" else question.steps(_DEVICE_US)
        command = run_command(question.pes, Path(sys.executable), self.programs.need(_MPI4PY_PROGRAM))
        command += [question.bench, *(step.argument() for step in steps), "--memory", question.memory]
        paths = [str(_mpi4py_site()), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {"PYTHONPATH": os.pathsep.join(paths), **device_environment(question.devices)}
        output = capture(command, self.series.label, environment, question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)


_MPI4PY_PROGRAM = "mpi4py_pingpong.py"


def _mpi4py_site() -> Path | None:
    here = checkout()
    site = None if here is None else here / "build" / "mpi4py" / "site-optimized"
    return site if site is not None and (site / "mpi4py").is_dir() else None


def weft_systems(
    programs: Programs, memory: str = "host", models: Sequence[str] = MODELS, paths: Sequence[str] = ()
) -> list[System]:
    """Every way through Weft of those models, from the bare machine up; if `paths` are given, those only."""
    found: list[System] = [one for one in _message_systems(programs, memory) if one.model in models]
    if paths:
        return [one for one in found if one.series.path in paths]
    if "mpi" in models:
        found += [Weft("mpi", "cpp", "weft_mpi_pingpong", programs), Mpi4pyWeft(programs)]
    return found


def _message_systems(programs: Programs, memory: str) -> list[Weft]:
    """The ways that are Weft's own interfaces.

    An entry method in C++ views a value of host memory where it arrived, or gets it as a "vector" of its own.
    With "nocopy" its buffer is sent in place and lands in one of the receiver's.

    Device memory goes "through UCX", and "staged" through the host, in every model. Over channels it also
    goes "peer-mapped", copied into the receiver's memory, or is "queued" on streams, also in a "graph".
    Kernels write into global memory by themselves. As a payload of an entry method it goes as a "tagged"
    message beside the metadata or in one "active" message.
    """
    if memory == "host":
        return [
            Weft("machine", "cpp", "machine_pingpong", programs, "tag"),
            Weft("channel", "cpp", "channel_pingpong", programs),
            Weft("messaging", "cpp", "entry_pingpong", programs),
            Weft("messaging", "cpp", "vector_pingpong", programs, "vector"),
            Weft("messaging", "cpp", "payload_pingpong", programs, "nocopy"),
            Weft("channel", "python", "channel_pingpong.py", programs),
            Weft("messaging", "python", "entry_pingpong.py", programs),
        ]
    return [
        Weft("machine", "cpp", "machine_pingpong", programs, "through UCX", _UNSTAGED),
        Weft("channel", "cpp", "channel_pingpong", programs, "peer-mapped", _UNSTAGED),
        Weft("channel", "cpp", "channel_pingpong", programs, "through UCX", _UNMAPPED),
        Weft("channel", "cpp", "channel_pingpong", programs, "staged", _STAGED),
        Weft("messaging", "cpp", "payload_pingpong", programs, "tagged", _TAGGED),
        Weft("messaging", "cpp", "payload_pingpong", programs, "active", _ACTIVE),
        Weft("messaging", "cpp", "payload_pingpong", programs, "staged", _STAGED),
        Weft("channel", "python", "channel_pingpong.py", programs, "peer-mapped", _UNSTAGED),
        Weft("channel", "python", "channel_pingpong.py", programs, "through UCX", _UNMAPPED),
        Weft("channel", "python", "channel_pingpong.py", programs, "staged", _STAGED),
        Weft("channel", "python", "queued_pingpong.py", programs, "queued", _UNSTAGED),
        Weft("channel", "python", "queued_pingpong.py", programs, "graph", _UNSTAGED, ("--graph",)),
        *(
            Weft("pgas", "python", KERNEL_PROGRAM, programs, path, _UNSTAGED, options)
            for path, options in KERNEL_WAYS.items()
            if memory == "cuda" and path != "flags of kernels"
        ),
        Weft("messaging", "python", "payload_pingpong.py", programs, "tagged", _TAGGED),
        Weft("messaging", "python", "payload_pingpong.py", programs, "active", _ACTIVE),
        Weft("messaging", "python", "payload_pingpong.py", programs, "staged", _STAGED),
    ]


_UNSTAGED = (("WEFT_STAGING", "device"),)
_UNMAPPED = (*_UNSTAGED, ("WEFT_PEER_MEMORY", "off"))
_STAGED = (("WEFT_STAGING", "host"),)
_TAGGED = (*_UNSTAGED, ("WEFT_MESSAGING_PATH", "tagged"))
_ACTIVE = (*_UNSTAGED, ("WEFT_MESSAGING_PATH", "active"))
