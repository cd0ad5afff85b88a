"""What `weft run --trace` shows of programs of MPI."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run

pytest.importorskip("perfetto")
from weft._trace.reading import Uses, read_trace

EXCHANGES = 10  # of tests/mpi/tools/traced.c


@pytest.fixture
def trace_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "trace"
    monkeypatch.setenv("WEFT_TRACE", str(file))
    return file


def calls(trace_file: Path) -> dict[int, dict[str, Uses]]:
    return {pe: one.calls for pe, one in read_trace(trace_file).pes.items()}


def test_the_calls_of_each_rank(run_mpi, trace_file: Path) -> None:
    done = run_mpi("tools/traced", 2)
    assert (done.returncode, done.stderr) == (0, "")
    found = calls(trace_file)
    assert found.keys() == {0, 1}
    for of_rank in found.values():
        assert {"MPI_Sendrecv", "MPI_Barrier", "MPI_Comm_rank"} <= of_rank.keys()
        assert of_rank["MPI_Sendrecv"].count == EXCHANGES
        assert of_rank["MPI_Barrier"].count == 1
        assert 0 < of_rank["MPI_Sendrecv"].longest_ns <= of_rank["MPI_Sendrecv"].time_ns
    for rank in (0, 1):
        assert f"rank {rank}".encode() in trace_file.read_bytes()


def test_the_calls_of_ranks_that_share_a_process(run_ranks: Run, mpi_program, trace_file: Path) -> None:
    done = run_ranks(2, 6, mpi_program("tools/traced"))
    assert (done.returncode, done.stderr) == (0, "")
    for of_pe in calls(trace_file).values():
        assert of_pe["MPI_Sendrecv"].count == 3 * EXCHANGES
        assert of_pe["MPI_Barrier"].count == 3


def test_the_calls_of_threads(run_mpi, trace_file: Path) -> None:
    done = run_mpi("threads/messages", 2)
    assert (done.returncode, done.stderr) == (0, "")
    for of_rank in calls(trace_file).values():
        assert of_rank["MPI_Send"].count > EXCHANGES
    assert b", thread 1" in trace_file.read_bytes()
