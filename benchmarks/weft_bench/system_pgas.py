"""One-sided operations: global memory of Weft, raw UCX, and MPI's RMA in C and in Python.

Their questions have a bench of ONE_SIDED_BENCHES. A path is the operation, the memories of source and target,
where these are, and the way: "put, host-host, remote, mapped".
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from weft_bench.errors import BenchError
from weft_bench.process import capture, read_measurements
from weft_bench.programs import Programs
from weft_bench.question import Question, Step, device_rate
from weft_bench.steadiness import core_distance_ns
from weft_bench.system import Reading, Series, System
from weft_bench.system_gpu import PeerCopy
from weft_bench.system_mpi import Mpi
from weft_bench.system_python import mpiexec
from weft_bench.system_ucx import DEFAULT_SETTINGS, INSTALL, WEFT_SETTINGS, UcxSettings, perftest
from weft_bench.system_weft import device_environment, run_command

#: What --against takes.
ONE_SIDED_REFERENCES = ("ucx", "openmpi", "mpich", "mpi4py-openmpi", "mpi4py-mpich", "peer-copy")
MAPPED, THROUGH_UCX, STAGED = "mapped", "through UCX", "staged"
_VALUE_BYTES = 8
_DEVICES = "device-device"
#: Bytes per microsecond, about, of copies between processes of a host that stay in the cache.
_CACHED_RATE = 50_000.0
#: The same of copies between a device and host memory, and of those that pass through host memory.
_HOST_DEVICE_RATE, _STAGED_RATE = 10_000.0, 1_000.0
#: What an operation costs at least, in microseconds; it only sizes the loops.
_MAPPED_US, _UCX_US, _C_US, _PYTHON_US, _DEVICE_US = 0.01, 1.0, 0.03, 1.0, 10.0
_HOST_ONLY = "its measuring program has host memory only"


@dataclasses.dataclass(frozen=True)
class WeftPgas:
    """One `operation` of pgas_copy.cpp or pgas_fetch_add.cpp.

    `pair` is source and target, as "host-device"; `where` is remote or local; `way` is mapped, through UCX,
    staged, which is through host memory of both PEs, or empty.
    """

    operation: str
    pair: str
    where: str
    way: str
    programs: Programs

    @property
    def series(self) -> Series:
        words = (self.operation, self.pair, self.where, self.way)
        return Series("weft", "pgas", "cpp", ", ".join(word for word in words if word))

    def absent(self, question: Question) -> str | None:
        return None if self.programs.find(self._program(question)) else self.programs.advice("pgas_copy")

    def run(self, question: Question) -> list[Reading]:
        is_value = self.operation.endswith(" value")
        if is_value:
            question = dataclasses.replace(question, sizes=(_VALUE_BYTES,))
        steps = self._steps(question)
        program = self.programs.need(self._program(question))
        way = self.operation.removeprefix("fetch-add ").replace(" value", "_value")
        if question.bench != "pgas_fetch_add":
            way = f"{'put' if way == 'copy' else way},{self.pair},{self.where}"
        command = [*run_command(question.pes, program), question.bench, *(step.argument() for step in steps)]
        command += ["--way", way, "--memory", question.memory]
        environment = {"WEFT_PGAS_MAPPING": "off" if self.way in (THROUGH_UCX, STAGED) else "on"}
        environment |= {"WEFT_STAGING": "host"} if self.way == STAGED else {}
        environment |= device_environment(question.devices)
        output = capture(command, self.series.label, environment, question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)

    def _program(self, question: Question) -> str:
        return "pgas_fetch_add" if question.bench == "pgas_fetch_add" else "pgas_copy"

    def _steps(self, question: Question) -> list[Step]:
        is_mapped = self.way not in (THROUGH_UCX, STAGED)
        if "device" in self.pair:
            return question.steps(_DEVICE_US, _rate(question, self.pair, is_mapped))
        return question.steps(_MAPPED_US if is_mapped else _UCX_US, _CACHED_RATE)


@dataclasses.dataclass(frozen=True)
class UcxRma:
    """raw_ucx_rma.cpp with one configuration.

    Host memory at the far end is UCX's own, or it is registered, as device memory always is.
    """

    operation: str
    settings: UcxSettings
    is_allocated: bool
    programs: Programs
    pair: str = "host-host"

    @property
    def series(self) -> Series:
        memory = "memory of UCX" if self.is_allocated else "registered memory"
        path = f"{_operation(self.operation)}, {self.pair}, remote, {self.settings.name}, {memory}"
        return Series("ucx", "machine", "cpp", path)

    def absent(self, question: Question) -> str | None:
        if "device" in self.pair and question.memory != "cuda":
            return "UCX takes device memory of kind cuda only"
        if question.bench == "pgas_fetch_add" and self.settings.error_handling:
            return "UCX has no atomic operations with error handling"
        if perftest() is None:
            return INSTALL
        return None if self.programs.find("raw_ucx_rma") else self.programs.advice("raw_ucx_rma")

    def run(self, question: Question) -> list[Reading]:
        has_device = "device" in self.pair
        rate = _rate(question, self.pair, is_mapped=False) if has_device else _CACHED_RATE
        steps = question.steps(_DEVICE_US if has_device else _UCX_US, rate)
        command = [str(self.programs.need("raw_ucx_rma")), question.bench]
        way = _way(self.operation) + ("-allocated" if self.is_allocated else "")
        way += "-with-error-handling" if self.settings.error_handling else ""
        if has_device:
            command += [
                "--memory",
                question.memory,
                "--devices",
                ",".join(map(str, question.devices or (0, 1))),
            ]
            way += f",{self.pair}"
        command += [*(step.argument() for step in steps), "--way", way]
        tool = perftest()
        environment = {**(tool.environment if tool else {}), **dict(self.settings.environment)}
        output = capture(command, self.series.label, environment, question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)


@dataclasses.dataclass(frozen=True)
class MpiRma:
    """mpi_rma.cpp, or mpi4py_rma.py if `language` is python; `library` is openmpi or mpich."""

    operation: str
    library: str
    language: str
    programs: Programs

    @property
    def series(self) -> Series:
        system = self.library if self.language == "cpp" else f"mpi4py-{self.library}"
        return Series(system, "mpi", self.language, f"{_operation(self.operation)}, host-host, remote")

    def absent(self, question: Question) -> str | None:
        if question.memory != "host":
            return _HOST_ONLY
        if self.language == "python" and importlib.util.find_spec("mpi4py") is None:
            return "pip install mpi4py"
        if self._launcher(question) is None:
            return self._mpi.install
        return None if self.programs.find(self._program) else self.programs.advice(self._program)

    def run(self, question: Question) -> list[Reading]:
        launcher = self._launcher(question)
        if launcher is None:
            raise BenchError(f"{self.series.label}: {self._mpi.install}")
        steps = question.steps(_C_US if self.language == "cpp" else _PYTHON_US, _CACHED_RATE)
        front = [*launcher, *([sys.executable] if self.language == "python" else [])]
        command = [*front, str(self.programs.need(self._program)), question.bench]
        command += [*(step.argument() for step in steps), "--way", _way(self.operation)]
        output = capture(command, self.series.label, self._environment(launcher), question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)

    @property
    def _mpi(self) -> Mpi:
        return Mpi(self.library, self.programs)

    @property
    def _program(self) -> str:
        return f"{self.library}_rma" if self.language == "cpp" else "mpi4py_rma.py"

    def _launcher(self, question: Question) -> list[str] | None:
        return self._mpi.launcher(question.pes)

    def _environment(self, launcher: Sequence[str]) -> dict[str, str]:
        """mpi4py's wheel has a module for each MPI: it is told which, and where the library is."""
        if self.language == "cpp":
            return {}
        program = mpiexec() if self.library == "openmpi" else Path(launcher[0])
        folder = Path() if program is None else program.resolve().parent.parent / "lib"
        found = {"MPI4PY_MPIABI": self.library}
        return found | ({"LD_LIBRARY_PATH": str(folder)} if (folder / "libmpi.so").exists() else {})


@dataclasses.dataclass(frozen=True)
class WeftWindow:
    """mpi_rma.cpp on Weft's MPI: windows and buffers of the operations are in the same kind of memory."""

    operation: str
    pair: str
    programs: Programs

    @property
    def series(self) -> Series:
        return Series("weft", "mpi", "cpp", f"{_operation(self.operation)}, {self.pair}, remote")

    def absent(self, question: Question) -> str | None:
        del question
        return None if self.programs.find(_WINDOW_PROGRAM) else self.programs.advice(_WINDOW_PROGRAM)

    def run(self, question: Question) -> list[Reading]:
        has_device = question.memory != "host"
        rate = _rate(question, self.pair, is_mapped=True) if has_device else _CACHED_RATE
        steps = question.steps(_DEVICE_US if has_device else _C_US, rate)
        command = [*run_command(question.pes, self.programs.need(_WINDOW_PROGRAM)), question.bench]
        command += [*(step.argument() for step in steps), "--way", _way(self.operation)]
        command += ["--memory", question.memory]
        environment = device_environment(question.devices)
        output = capture(command, self.series.label, environment, question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)


_WINDOW_PROGRAM = "weft_mpi_rma"


@dataclasses.dataclass(frozen=True)
class CacheLine:
    """The time of a cache line between the cores: a fetch-add on another PE's word must wait so long."""

    programs: Programs

    @property
    def series(self) -> Series:
        return Series("cache-line", "machine", "cpp", "between the cores")

    def absent(self, question: Question) -> str | None:
        del question
        return None if self.programs.find("core_distance") else self.programs.advice("core_distance")

    def run(self, question: Question) -> list[Reading]:
        distance_ns = core_distance_ns(self.programs)
        if distance_ns is None:
            raise BenchError("core_distance measured nothing: it needs two cores")
        return [Reading(size, distance_ns / 1e3, 0) for size in question.sizes]


def one_sided_systems(bench: str, memory: str, programs: Programs, against: str = "all") -> list[System]:
    """Who answers that bench, Weft first. `against`: all, none, or names of ONE_SIDED_REFERENCES."""
    names = _names(against)
    systems: list[System] = [*_weft(bench, memory, programs)]
    operations = ("fetch-add",) if bench == "pgas_fetch_add" else ("put", "get")
    pair = "host-host" if memory == "host" else _DEVICES
    systems += [WeftWindow(operation, pair, programs) for operation in operations]
    if memory != "host":
        return [*systems, *_beside_devices(bench, programs, names)]
    for operation in operations:
        if "ucx" in names:
            systems += [
                UcxRma(operation, settings, is_allocated, programs)
                for settings in (DEFAULT_SETTINGS, WEFT_SETTINGS)
                for is_allocated in (False, True)
            ]
        for library in ("openmpi", "mpich"):
            if library in names:
                systems.append(MpiRma(operation, library, "cpp", programs))
            if f"mpi4py-{library}" in names:
                systems.append(MpiRma(operation, library, "python", programs))
    if bench == "pgas_fetch_add":
        systems.append(CacheLine(programs))
    return systems


def _weft(bench: str, memory: str, programs: Programs) -> Iterator[WeftPgas]:
    if bench == "pgas_fetch_add":
        for way in (MAPPED, THROUGH_UCX):
            for sharing in ("alone", "contended", "owned"):
                yield WeftPgas(f"fetch-add {sharing}", "host", "remote", way, programs)
        return
    pairs = ["host-host", "host-device", "device-host", "device-device"][: 1 if memory == "host" else None]
    if bench == "pgas_latency" and memory == "host":
        for operation in ("put value", "get value"):
            for way in (MAPPED, THROUGH_UCX):
                yield WeftPgas(operation, "host-host", "remote", way, programs)
    for pair in pairs:
        for operation in ("put", "get"):
            for way in (MAPPED, THROUGH_UCX, *([STAGED] if pair == _DEVICES else [])):
                yield WeftPgas(operation, pair, "remote", way, programs)
        if bench != "pgas_flood_both":
            yield WeftPgas("copy", pair, "local", "", programs)


def _beside_devices(bench: str, programs: Programs, names: Sequence[str]) -> Iterator[System]:
    """Raw UCX, and copies by one process that sees both devices. The MPI packages have host memory only."""
    if "peer-copy" in names and bench != "pgas_flood_both":
        yield PeerCopy(programs)
    for pair in ("host-device", "device-host", _DEVICES) if "ucx" in names else ():
        for operation in ("put", "get"):
            for settings in (DEFAULT_SETTINGS, WEFT_SETTINGS):
                yield UcxRma(operation, settings, False, programs, pair)


def _rate(question: Question, pair: str, is_mapped: bool) -> float:
    """Bytes per microsecond of large copies with a device at one end or both."""
    if pair == _DEVICES and is_mapped:
        return device_rate(question.memory)
    return _HOST_DEVICE_RATE if is_mapped else _STAGED_RATE


def _names(against: str) -> tuple[str, ...]:
    names = () if against == "none" else tuple(against.split(","))
    names = ONE_SIDED_REFERENCES if against == "all" else names
    for name in names:
        if name not in ONE_SIDED_REFERENCES:
            known = ", ".join(ONE_SIDED_REFERENCES)
            raise BenchError(f"no reference system {name!r}: choose all, none or some of {known}")
    return names


def _operation(operation: str) -> str:
    return "fetch-add alone" if operation == "fetch-add" else operation


def _way(operation: str) -> str:
    return "put" if operation == "fetch-add" else operation
