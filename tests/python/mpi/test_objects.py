"""Groups, communicators, attributes, error handlers and handles in programs of C."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("num_pes", [None, 1, 3])
def test_groups_attributes_and_error_handlers(run_mpi, num_pes):
    result = run_mpi("objects", num_pes)
    assert result.stderr == ""
    assert result.stdout == f"objects of {num_pes or 1} ranks: as expected\n"
    assert result.returncode == 0


def test_an_error_ends_the_job_with_a_sentence(run_mpi):
    result = run_mpi("fatal", 2)
    assert result.returncode != 0
    assert "not reached" not in result.stdout
    assert "weft: rank 0: MPI_Send on MPI_COMM_WORLD: " in result.stderr
    assert "(MPI_ERR_RANK)" in result.stderr
    assert "set MPI_ERRORS_RETURN" in result.stderr


@pytest.mark.parametrize("num_pes", [4, 5, 8])
def test_groups_that_overlap_get_their_own_communicators(run_mpi, num_pes):
    result = run_mpi("create_groups", num_pes)
    assert result.stderr == ""
    assert result.stdout == f"overlapping groups of {num_pes} ranks: as expected\n"
    assert result.returncode == 0


@pytest.mark.parametrize("num_pes", [None, 2])
def test_handles_and_statuses_go_to_fortran_and_back(run_mpi, num_pes):
    result = run_mpi("fortran_handles", num_pes)
    assert result.stderr == ""
    assert result.stdout == f"Fortran handles on {num_pes or 1} ranks: as expected\n"
    assert result.returncode == 0
