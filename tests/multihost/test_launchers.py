"""Jobs on two hosts, by every launcher that Weft knows; and what one that Weft does not know is told."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from pathlib import Path

import launchers
import pytest
import slurm
from cluster import Cluster, finish

# How long the end of a job may take after the death of one of its PEs; srun asks again after seconds.
END_WITHIN_S = 45.0

PROGRAM = """
import weft

class Worker(weft.Chare):
    def where(self):
        import os
        return weft.my_pe(), os.uname().nodename

async def main():
    workers = weft.Group(Worker)
    for pe, host in await workers.where.call():
        print(pe, host)

weft.run(main)
"""


PARENT = """
import subprocess
import sys
import weft

CHILD = "import weft\\nasync def main(): print(weft.num_pes())\\nweft.run(main)"

class Worker(weft.Chare):
    def start_another(self):
        if weft.my_pe() == 0:
            child = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=60)
            print(child.returncode, child.stdout, child.stderr, flush=True)
        return weft.my_pe()

async def main():
    workers = weft.Group(Worker)
    print("all PEs are there:", len(await workers.start_another.call()), flush=True)

weft.run(main)
"""


def test_all_pes_join_and_exchange_several_times(launched, programs: Path) -> None:
    cluster, launch = launched
    outcome = cluster.hosts[0].run(launch(2, [programs / "bootstrap_probe", 5]))
    assert outcome.exit_code == 0, outcome.stderr
    assert sorted(re.sub(r"^\w+ ", "", line) for line in outcome.stdout.splitlines()) == [
        f"{pe} of 4, local {pe % 2} of 2" for pe in range(4)
    ]


def test_a_python_job(launched, tmp_path: Path) -> None:
    cluster, launch = launched
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    outcome = cluster.hosts[0].run(launch(2, [sys.executable, program]))
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout == "0 nodeA\n1 nodeA\n2 nodeB\n3 nodeB\n"


def test_an_exception_without_an_awaiting_caller_ends_the_job(
    launched, programs: Path, tmp_path: Path
) -> None:
    cluster, launch = launched
    errors = tmp_path / "errors"
    outcome = cluster.hosts[0].run(
        launch(2, launchers.with_errors_in(errors, [programs / "fault_probe", "throw"]))
    )
    assert outcome.exit_code != 0
    # `weft run` prints it itself.
    said = errors.read_text() + outcome.stderr
    assert said.count("std::invalid_argument: the number 13 is not liked here\n") == 1


@pytest.mark.parametrize("doing", ["load", "idle"])
def test_a_killed_pe_on_the_other_host_ends_the_job(launched, programs: Path, doing: str) -> None:
    cluster, launch = launched
    job = cluster.hosts[0].start(launch(2, [programs / "fault_probe", doing]))
    pids = launchers.ready_pids(job, 4)
    cluster.hosts[1].signal(pids[2], signal.SIGKILL)
    outcome = finish(job)
    assert outcome.exit_code != 0
    assert outcome.seconds < END_WITHIN_S
    for host in cluster.hosts:
        host.wait_for_the_end_of("fault_probe", END_WITHIN_S)


@pytest.mark.usefixtures("need_slurm")
def test_srun_without_a_way_to_find_one_another_is_refused_once(programs: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with Cluster(2, overlay=slurm.PACKAGES / "usr") as cluster:
        controller = slurm.Slurm(cluster)
        controller.start()
        for command in ([programs / "fault_probe", "catch"], [sys.executable, program]):
            outcome = cluster.hosts[0].run(controller.srun(2, command, mpi="none"))
            # When the first processes have failed, srun ends those of the other host with SIGTERM. If these
            # have not failed by then, srun's code is that signal's.
            assert outcome.exit_code in (1, 128 + signal.SIGTERM), outcome.stderr
            assert outcome.stderr.count("a launcher started 4 processes") == 1, outcome.stderr
            assert "srun --mpi=pmix" in outcome.stderr
        alone = cluster.hosts[0].run(
            controller.srun(
                2,
                [programs / "fault_probe", "exit", 0],
                mpi="none",
                environment={"WEFT_BOOTSTRAP": "singleton"},
            )
        )
        assert alone.exit_code == 0, alone.stderr


@pytest.mark.usefixtures("need_cluster")
def test_of_two_launchers_the_inner_one_counts(programs: Path) -> None:
    """Its processes inherit the variables of the outer one."""
    probe = [programs / "bootstrap_probe", 1]
    with Cluster(1) as cluster:
        node_a = cluster.hosts[0]
        for inner, outer, name in (
            (launchers.hydra, launchers.prrte, "pmi"),
            (launchers.prrte, launchers.hydra, "pmix"),
        ):
            command = shlex.join(inner(cluster, 4, probe))
            outcome = node_a.run(outer(cluster, 1, ["sh", "-c", command]))
            assert outcome.exit_code == 0, outcome.stderr
            expected = [f"{name} {pe} of 4, local {pe} of 4" for pe in range(4)]
            assert sorted(outcome.stdout.splitlines()) == expected


def test_one_launch_is_one_job(launched, programs: Path, tmp_path: Path) -> None:
    cluster, launch = launched
    errors = tmp_path / "errors"
    probe = programs / "bootstrap_probe"
    outcome = cluster.hosts[0].run(
        launch(1, launchers.with_errors_in(errors, ["sh", "-c", f"{probe} 1 && {probe} 1"]))
    )
    assert outcome.exit_code != 0
    assert len(outcome.stdout.splitlines()) == 2, outcome.stdout
    refused = errors.read_text()
    assert re.search("one launch is one Weft job|serves one Weft program", refused), refused


def test_a_program_that_a_pe_starts_is_refused_and_harms_nothing(launched, tmp_path: Path) -> None:
    cluster, launch = launched
    program = tmp_path / "parent.py"
    program.write_text(PARENT)
    outcome = cluster.hosts[0].run(launch(1, [sys.executable, program]))
    assert outcome.exit_code == 0, outcome.stderr
    assert re.search("one launch is one Weft job|serves one Weft program|gave them no way", outcome.stdout)
    assert outcome.stdout.endswith("all PEs are there: 2\n"), outcome.stdout


@pytest.mark.usefixtures("need_cluster")
@pytest.mark.parametrize("pes_per_host", [1, 2])
def test_pes_with_process_numbers_of_their_own(programs: Path, pes_per_host: int) -> None:
    """As in containers that do not share the host's: PEs of one host then are PEs of two."""
    alone = ["unshare", "--pid", "--fork", "--mount-proc", programs / "payload_probe", "host"]
    with Cluster(2) as cluster:
        job = launchers.prrte(cluster, pes_per_host, alone, {"WEFT_TRUSTED_NETWORK": "1"})
        outcome = cluster.hosts[0].run(job)
        assert outcome.exit_code == 0, outcome.stderr
    with Cluster(1) as cluster:
        job = launchers.prrte(cluster, 2 * pes_per_host, alone, {"WEFT_TRUSTED_NETWORK": "1"})
        outcome = cluster.hosts[0].run(job)
        assert outcome.exit_code == 0, outcome.stderr


@pytest.mark.usefixtures("need_cluster")
def test_a_batch_script_starts_single_processes(programs: Path) -> None:
    batch = {**os.environ, "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_ID": "1"}
    with Cluster(1) as cluster:
        outcome = cluster.hosts[0].run([programs / "bootstrap_probe"], env=batch)
    assert outcome.stdout == "singleton 0 of 1, local 0 of 1\n", outcome.stderr


@pytest.mark.usefixtures("need_cluster")
def test_hosts_of_the_same_name_are_two_hosts(programs: Path) -> None:
    with Cluster(2, same_hostname=True) as cluster:
        assert cluster.hosts[1].check(["hostname"]) == "nodeA\n"
        outcome = cluster.hosts[0].run(launchers.hydra(cluster, 2, [programs / "bootstrap_probe", 2]))
        assert outcome.exit_code == 0, outcome.stderr
        assert outcome.stdout.count("local 0 of 2\n") == 2
        trusted = {"WEFT_TRUSTED_NETWORK": "1"}
        job = launchers.hydra(cluster, 2, [programs / "payload_probe", "host"], trusted)
        outcome = cluster.hosts[0].run(job)
        assert outcome.exit_code == 0, outcome.stderr
