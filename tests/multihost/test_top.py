"""`weft top` on one host of a job shows the PEs of all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import launchers
from cluster import Cluster, finish

PROGRAM = Path(__file__).resolve().parents[1] / "python" / "top" / "programs" / "exchange.py"
TOP = [sys.executable, "-m", "weft", "top", "--interval", "0.5"]


@contextmanager
def exchange(
    cluster: Cluster, *arguments: str, program: Sequence[object] = (sys.executable, PROGRAM)
) -> Iterator[subprocess.Popen[str]]:
    """The program with a PE on each host, under way."""
    stop = cluster.folder / "stop"
    command = launchers.prrte(cluster, 1, [*program, stop, *arguments], {"WEFT_TRUSTED_NETWORK": "1"})
    job = cluster.hosts[0].start(command)
    assert job.stdout is not None
    line = job.stdout.readline()
    assert line == "ready\n", f"the job did not start:\n{job.communicate()[1]}"
    yield job
    stop.touch()
    outcome = finish(job, 60)
    assert outcome.exit_code == 0, outcome.stderr


def test_each_host_shows_the_pes_of_all(two_hosts: Cluster) -> None:
    with exchange(two_hosts):
        for here, other in ((0, 1), (1, 0)):
            shown = json.loads(two_hosts.hosts[here].check([*TOP, "--json"]))
            assert (shown["num_pes"], shown["problems"]) == (2, [])
            by_pe = {pe["pe"]: pe for pe in shown["pes"]}
            assert by_pe.keys() == {0, 1}
            assert by_pe[here]["host"] is None
            assert by_pe[other]["host"] == two_hosts.hosts[other].name
            for pe in by_pe.values():
                assert pe["handled_per_s"] > 0
                assert pe["busy"] + pe["communication"] + pe["idle"] > 0.999
                assert pe["host_bytes"] > pe["pool_bytes"] > 0
        assert two_hosts.hosts[1].name in two_hosts.hosts[0].check([*TOP, "--once"])


def test_a_pe_that_computes_on_another_host_is_named(two_hosts: Cluster) -> None:
    with exchange(two_hosts, "compute"):
        shown = two_hosts.hosts[0].check([*TOP, "--once"])
        assert "PE 1 is not seen: on another host and without an answer" in shown


def test_ranks_of_mpi_that_wait_inside_calls(two_hosts: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "exchange"
    source = Path(__file__).with_name("exchange.c")
    weft = [sys.executable, "-m", "weft"]
    subprocess.run([*weft, "mpicc", "-std=gnu99", source, "-o", program], check=True, timeout=60)
    with exchange(two_hosts, program=[program]):
        for host in two_hosts.hosts:
            shown = json.loads(host.check([*TOP, "--json"]))
            assert sorted(pe["pe"] for pe in shown["pes"]) == [0, 1]
            assert all(path["messages_per_s"] > 0 for pe in shown["pes"] for path in pe["paths"])
