"""MPI in C: what is missing is told, and each library is started by its own mpiexec."""

import sys

import pytest

from weft_bench import system_mpi
from weft_bench.programs import Programs
from weft_bench.question import Question
from weft_bench.system_mpi import Mpi

LATENCY = Question("latency", (8,))


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Both libraries with their programs, in a Python of their own with two cores."""
    (tmp_path / "mpich" / "bin").mkdir(parents=True)
    (tmp_path / "mpich" / "bin" / "mpiexec").touch()
    for name in ("openmpi_pingpong", "mpich_pingpong"):
        (tmp_path / name).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(system_mpi, "mpiexec", lambda: tmp_path / "mpiexec")
    monkeypatch.setattr(system_mpi, "mpiexec_command", lambda pes: ["openmpi-mpiexec", str(pes)])
    monkeypatch.setattr(system_mpi.os, "sched_getaffinity", lambda _: {0, 1})
    return tmp_path


@pytest.mark.parametrize(
    ("library", "front"), [("openmpi", ["openmpi-mpiexec", "2"]), ("mpich", ["MPICH", "-n", "2"])]
)
def test_each_library_is_started_by_its_own_mpiexec(installed, monkeypatch, library, front):
    commands = []

    def run(command, *_, **__):
        commands.append(command)
        return '{"size_bytes": 8, "metric": "latency_us", "value": 2.0}\n'

    monkeypatch.setattr(system_mpi, "capture", run)
    (reading,) = Mpi(library, Programs(installed)).run(LATENCY)
    assert reading.value == 2.0
    mpich = str(installed / "mpich" / "bin" / "mpiexec")
    expected = [mpich if word == "MPICH" else word for word in front]
    assert commands[0][: len(front) + 2] == [*expected, str(installed / f"{library}_pingpong"), "latency"]


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_absence_says_how_to_install(installed, library):
    assert Mpi(library, Programs(installed)).absent(LATENCY) is None
    (installed / f"{library}_pingpong").unlink()
    assert "pip install" in Mpi(library, Programs(installed)).absent(LATENCY)
    assert "cuda buffers" in Mpi(library, Programs(installed)).absent(Question("latency", (8,), "cuda"))


def test_mpich_has_no_more_processes_than_cores(installed):
    crowded = Question("allreduce", (8,), pes=3)
    assert "without yielding" in Mpi("mpich", Programs(installed)).absent(crowded)
    assert Mpi("openmpi", Programs(installed)).absent(crowded) is None
