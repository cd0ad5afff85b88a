"""Collective operations and topologies, in programs in C."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("program", ["collectives", "collective_sizes", "topologies"])
@pytest.mark.parametrize("num_pes", [None, 1, 2, 3, 4, 5])
def test_results_are_those_of_the_standard(run_mpi, program, num_pes):
    done = run_mpi(program, num_pes)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{program} of {num_pes or 1} ranks: as expected\n"
