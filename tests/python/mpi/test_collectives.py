"""Collective operations and topologies, in programs in C."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("program", ["collectives", "collective_sizes", "topologies"])
@pytest.mark.parametrize("num_pes", [None, 1, 2, 3, 4, 5])
def test_results_are_those_of_the_standard(run_mpi, program, num_pes):
    done = run_mpi(program, num_pes)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{program} of {num_pes or 1} ranks: as expected\n"


@pytest.mark.parametrize("kind", ["barrier", "allreduce", "allgather", "bcast"])
@pytest.mark.parametrize("size_bytes", [8, 40000, 2000000])
def test_a_process_that_is_killed_in_a_collective_ends_the_job(run_mpi, kind, size_bytes):
    """The others wait for its messages, and some have blocks that they read in its memory."""
    done = run_mpi("lost_in_collective", 3, kind, str(size_bytes))
    assert done.returncode != 0
    assert "PE 1" in done.stderr, done.stderr
    assert "SIGKILL" in done.stderr
