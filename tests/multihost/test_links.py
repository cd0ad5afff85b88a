"""The connections by which PEs notice that a host is lost: which network they take, and what they lack."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from subprocess import Popen

import launchers
import pytest
from cluster import Cluster, Host, Network, finish, wait_until

# After a fault every PE has ended: within 15 s (docs/clusters.md) if it gets its core. On a busy machine that
# takes longer; tools/count_faults.py shows how long it took.
END_WITHIN_S = 45.0
TRUSTED = {"WEFT_TRUSTED_NETWORK": "1"}

pytestmark = pytest.mark.usefixtures("need_cluster")


def alive(host: Host) -> list[str]:
    """Of fault_probe. A launcher that is frozen does not wait for its dead."""
    lines = host.check(["ps", "-eo", "pid,stat,comm"]).splitlines()
    return [line for line in lines if line.endswith("fault_probe") and line.split()[1][0] != "Z"]


def freeze_launchers(hosts: list[Host]) -> None:
    for host in hosts:
        for name in ("mpiexec", "prterun", "prted"):
            for pid in host.pids(name):
                host.signal(pid, signal.SIGSTOP)


PEERS = """
import os, re, sys
inodes = set()
for pid in sys.argv[1:]:
    for fd in os.listdir(f"/proc/{pid}/fd"):
        inodes.update(re.findall(r"socket:.(\\d+)", os.readlink(f"/proc/{pid}/fd/{fd}")))
for table in ("tcp", "tcp6"):
    for line in open("/proc/net/" + table).read().splitlines()[1:]:
        words = line.split()
        if words[3] == "01" and words[9] in inodes:
            print(".".join(str(byte) for byte in bytes.fromhex(words[2].split(":")[0][-8:])[::-1]))
"""


def peer_addresses(host: Host, pids: list[int]) -> set[str]:
    """Of the TCP connections that these processes have."""
    return set(host.check([sys.executable, "-c", PEERS, *pids]).split())


def test_links_take_the_network_that_ucx_takes(programs: Path) -> None:
    """Else the failure of another one ends the job."""
    with Cluster(2, networks=[Network(0), Network(1)]) as cluster:
        node_a, node_b = cluster.hosts
        environment = {**TRUSTED, "UCX_NET_DEVICES": "eth1"}
        job = node_a.start(launchers.prrte(cluster, 2, [programs / "fault_probe", "idle"], environment))
        pids = launchers.ready_pids(job, 4)
        launcher = {"127.0.0.1", cluster.networks[0].addresses(0)[0]}
        peers = peer_addresses(node_a, [pids[0], pids[1]]) - launcher
        assert peers == {cluster.networks[1].addresses(1)[0]}
        node_b.signal(pids[2], signal.SIGKILL)
        finish(job)


@pytest.mark.multihost_all
def test_all_pes_end_if_one_dies_and_the_launcher_hangs(two_hosts: Cluster, programs: Path) -> None:
    node_a, node_b = two_hosts.hosts
    job = node_a.start(launchers.prrte(two_hosts, 2, [programs / "fault_probe", "idle"], TRUSTED))
    pids = launchers.ready_pids(job, 4)
    freeze_launchers(two_hosts.hosts)
    node_b.signal(pids[2], signal.SIGKILL)
    wait_until(lambda: not alive(node_a) and not alive(node_b), "the end of all PEs", END_WITHIN_S)


@pytest.mark.multihost_all
def test_all_pes_end_if_a_host_of_five_is_lost(programs: Path) -> None:
    with Cluster(5) as cluster:
        job = cluster.hosts[0].start(launchers.prrte(cluster, 2, [programs / "fault_probe", "idle"], TRUSTED))
        launchers.ready_pids(job, 10)
        freeze_launchers(cluster.hosts)
        cluster.hosts[2].kill(noticed=False)
        rest = [host for host in cluster.hosts if host is not cluster.hosts[2]]
        wait_until(lambda: not any(alive(host) for host in rest), "the end of all PEs", END_WITHIN_S)


HOLD = """
import socket, sys
holders = []
for family, anywhere in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
    holder = socket.socket(family)
    if family == socket.AF_INET6:
        holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    holder.bind((anywhere, 40001))
    holder.listen()
    holders.append(holder)
print("held", flush=True)
sys.stdin.read()
"""


def job_without_a_port(cluster: Cluster, programs: Path) -> tuple[Popen[str], Popen[str]]:
    """The job, in which PE 1 has no port, since the other process holds it. PE 1 has just said so."""
    holder = cluster.hosts[0].start([sys.executable, "-c", HOLD], stdin=-1)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    script = f"test $PMIX_RANK = 1 && export UCX_TCP_PORT_RANGE=40001-40001; exec {programs}/fault_probe idle"
    job = cluster.hosts[0].start(launchers.prrte(cluster, 2, ["sh", "-c", script], TRUSTED))
    assert job.stderr is not None
    said = ""
    while "weft: PE 1: no TCP connection with PE " not in said:
        line = job.stderr.readline()
        assert line, said
        said += line
    assert "PE 1 on nodeA has found no free port" in said
    return job, holder


def test_a_pe_without_a_port_says_so_at_once(two_hosts: Cluster, programs: Path) -> None:
    """Not the first PE of its host. UCX then gives up."""
    job, _ = job_without_a_port(two_hosts, programs)
    assert finish(job).exit_code != 0


def test_a_host_that_is_lost_during_the_start(two_hosts: Cluster, programs: Path) -> None:
    """The others wait for PE 1, whose end their launcher cannot tell them."""
    job_without_a_port(two_hosts, programs)
    two_hosts.cut(two_hosts.hosts[1])
    hosts = two_hosts.hosts
    wait_until(lambda: not any(alive(host) for host in hosts), "the end of all PEs", END_WITHIN_S)


def test_links_leave_no_port_in_use(two_hosts: Cluster, programs: Path) -> None:
    """Of those for links, which are the first two. UCX waits for a minute if it finds no port."""
    environment = {**TRUSTED, "UCX_TCP_PORT_RANGE": "40000-40099"}
    job = launchers.prrte(two_hosts, 2, [programs / "payload_probe", "host"], environment)
    outcome = two_hosts.hosts[0].run(job)
    assert outcome.exit_code == 0, outcome.stderr
    for host in two_hosts.hosts:
        tables = host.check(["cat", "/proc/net/tcp", "/proc/net/tcp6"])
        ports = [int(line.split()[1].split(":")[1], 16) for line in tables.splitlines() if ": " in line]
        assert not {40000, 40001} & set(ports)
