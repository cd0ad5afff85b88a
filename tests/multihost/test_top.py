"""`weft top` on one host of a job shows the PEs of all."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import launchers
from cluster import HANG_S, Cluster, Host, finish, wait_until

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


def look(host: Host, shows: Callable[[dict], bool]) -> dict:
    """What --json prints there, as soon as shows(record).

    A PE that waits for its core may do nothing between two looks.
    """
    until = time.monotonic() + HANG_S
    while True:
        record = json.loads(host.check([*TOP, "--json"]))
        if shows(record) or time.monotonic() > until:
            return record


def all_work(record: dict) -> bool:
    pes = record["pes"]
    return len(pes) == 2 and record["problems"] == [] and all(pe["handled_per_s"] > 0 for pe in pes)


def all_paths_are_used(record: dict) -> bool:
    paths = [path for pe in record["pes"] for path in pe["paths"]]
    return len(record["pes"]) == 2 and all(path["messages_per_s"] > 0 for path in paths)


def test_each_host_shows_the_pes_of_all(two_hosts: Cluster) -> None:
    with exchange(two_hosts):
        for here, other in ((0, 1), (1, 0)):
            shown = look(two_hosts.hosts[here], all_work)
            assert (shown["num_pes"], shown["problems"]) == (2, [])
            by_pe = {pe["pe"]: pe for pe in shown["pes"]}
            assert by_pe.keys() == {0, 1}
            assert by_pe[here]["host"] is None
            assert by_pe[other]["host"] == two_hosts.hosts[other].name
            for pe in by_pe.values():
                assert pe["handled_per_s"] > 0
                assert pe["busy"] + pe["communication"] + pe["idle"] > 0.999
                assert pe["host_bytes"] > pe["pool_bytes"] > 0
        node_a, node_b = two_hosts.hosts
        wait_until(lambda: node_b.name in node_a.check([*TOP, "--once"]), "the answer of the other host")


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
            shown = look(host, all_paths_are_used)
            assert sorted(pe["pe"] for pe in shown["pes"]) == [0, 1]
            assert all(path["messages_per_s"] > 0 for pe in shown["pes"] for path in pe["paths"])
