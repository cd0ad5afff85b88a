"""The cluster itself: hosts that share nothing, and that never outlive a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import IPV6_ONLY, Cluster, Network, finish, wait_until

pytestmark = pytest.mark.usefixtures("need_cluster")

# Accepts one connection and prints what comes.
LISTEN = """
import socket, sys
listener = socket.create_server(("", 7000), family=socket.AF_INET6, dualstack_ipv6=True)
print("listening", flush=True)
print(listener.accept()[0].recv(10).decode(), flush=True)
"""
SEND = 'import socket, sys; socket.create_connection((sys.argv[1], 7000), 5).sendall(b"hello")'


def alive(marker: str) -> list[str]:
    """Command lines of processes of this machine with that word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().decode(errors="replace")
        except OSError:
            continue  # it has just ended
        if marker in text:
            found.append(text)
    return found


def test_hosts_have_their_own_name_processes_memory_and_folder(two_hosts: Cluster) -> None:
    node_a, node_b = two_hosts.hosts
    assert [host.check(["hostname"]) for host in two_hosts.hosts] == ["nodeA\n", "nodeB\n"]
    node_a.check(["sh", "-c", "touch /dev/shm/mine $TMPDIR/mine /run/mine; ipcmk -M 100"])
    seen = node_b.check(["sh", "-c", "ls /dev/shm $TMPDIR /run; ipcs -m | wc -l; ps -e | wc -l"])
    assert "mine" not in seen
    assert node_a.check(["sh", "-c", "ipcs -m | wc -l"]) != node_b.check(["sh", "-c", "ipcs -m | wc -l"])
    # Its first process, this shell, ps and what counts.
    assert int(seen.split()[-1]) <= 6
    assert node_a.check(["ls", "/sys/class/net"]).split() == ["eth0", "lo"]


@pytest.mark.parametrize("network", [Network(0), IPV6_ONLY, Network(1, ipv6=True)])
def test_hosts_reach_one_another_by_name(network: Network) -> None:
    with Cluster(3, networks=[network]) as cluster:
        receiver = cluster.hosts[2].start([sys.executable, "-c", LISTEN])
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "listening\n"
        cluster.hosts[0].check([sys.executable, "-c", SEND, "nodeC"])
        assert finish(receiver).stdout == "hello\n"


def test_hosts_do_not_reach_the_outside(two_hosts: Cluster) -> None:
    assert two_hosts.hosts[0].check(["ip", "route"]).split() == [
        "10.77.0.0/24", "dev", "eth0", "proto", "kernel", "scope", "link", "src", "10.77.0.1",
    ]  # fmt: skip


def test_a_cut_link_passes_nothing_until_it_is_mended(two_hosts: Cluster) -> None:
    node_a, node_b = two_hosts.hosts
    ping = [
        "python3",
        "-c",
        "import socket,sys; s = socket.socket(); s.settimeout(0.2); print(s.connect_ex(('nodeB', 1)))",
    ]
    refused, silent = "111\n", "11\n"
    assert node_a.check(ping) == refused
    two_hosts.cut(node_b)
    assert node_a.check(ping) == silent
    two_hosts.mend(node_b)
    wait_until(lambda: node_a.check(ping) == refused, "the mended link")


def test_exit_codes_signals_and_streams_pass(two_hosts: Cluster) -> None:
    host = two_hosts.hosts[0]
    assert host.run(["sh", "-c", "echo out; echo err >&2; exit 3"]).exit_code == 3
    outcome = host.run(["sh", "-c", "echo out; echo err >&2; kill -9 $$"])
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (-signal.SIGKILL, "out\n", "err\n")
    assert "no_such_program cannot be started on nodeA" in host.run(["no_such_program"]).stderr
    # A child of the shell loses a signal that comes before it has dropped the trap: it says when.
    job = host.start(["sh", "-c", "trap 'kill $!; exit 5' TERM; (echo ready; exec sleep 1000) & wait"])
    assert job.stdout is not None
    assert job.stdout.readline() == "ready\n"
    job.send_signal(signal.SIGTERM)
    assert finish(job).exit_code == 5


def test_a_killed_host_takes_all_its_processes(two_hosts: Cluster) -> None:
    _, node_b = two_hosts.hosts
    marker = f"marker-{os.getpid()}"
    jobs = [
        host.start(["sh", "-c", f"echo ready; sleep 1000; echo {marker}-{host.name}"])
        for host in two_hosts.hosts
    ]
    for job in jobs:
        assert job.stdout is not None
        assert job.stdout.readline() == "ready\n"
    node_b.kill()
    assert finish(jobs[1]).exit_code == -signal.SIGKILL
    assert len(alive(f"{marker}-nodeA")) == 2  # the program, and the process that asked for it
    assert not alive(f"{marker}-nodeB")


def test_nothing_is_left_when_the_body_raises() -> None:
    marker = f"marker-{os.getpid()}-raises"
    with pytest.raises(ValueError, match="the test fails"), Cluster(2) as cluster:
        folder = cluster.folder
        cluster.hosts[1].start(
            ["sh", "-c", f"setsid sh -c 'trap \"\" TERM; sleep 1000; echo {marker}' & sleep 1000"]
        )
        wait_until(lambda: alive(marker), "the start of the process")
        raise ValueError("the test fails")
    assert not folder.exists()
    wait_until(lambda: not alive(marker), "the end of the process")


def test_nothing_is_left_when_the_test_process_is_killed(tmp_path: Path) -> None:
    marker = f"marker-{os.getpid()}-killed"
    program = tmp_path / "program.py"
    program.write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from cluster import Cluster\n"
        "with Cluster(2) as cluster:\n"
        f"    jobs = [host.start(['sh', '-c', 'sleep 1000; echo {marker}']) for host in cluster.hosts]\n"
        "    print(cluster.folder, flush=True)\n"
        "    jobs[0].wait()\n"
    )
    process = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder = process.stdout.readline().strip()
    wait_until(lambda: len(alive(marker)) >= 4, "the start of the processes")
    process.kill()
    process.communicate()
    wait_until(lambda: not alive(marker) and not alive(folder), "the end of all processes")
    subprocess.run(["rm", "-r", folder], check=True)  # a killed process leaves its folder


def test_a_command_that_hangs_is_ended(two_hosts: Cluster) -> None:
    host = two_hosts.hosts[0]
    job = host.start(["sh", "-c", "echo so far; exec sleep 1000"])
    wait_until(lambda: host.pids("sleep"), "the start of the program")
    with pytest.raises(TimeoutError, match=r"did not end in 0.5 s:\nso far"):
        finish(job, 0.5)
    wait_until(lambda: not host.pids("sleep"), "the end of the program")


def test_the_end_of_a_program_is_waited_for(two_hosts: Cluster) -> None:
    host = two_hosts.hosts[0]
    job = host.start(["tail", "-f", "/dev/null"])
    wait_until(lambda: host.pids("tail"), "the start of the program")
    with pytest.raises(TimeoutError, match=r"tail has not ended on nodeA in 0.5 s"):
        host.wait_for_the_end_of("tail", 0.5)
    two_hosts.hosts[1].wait_for_the_end_of("tail")  # none there
    job.kill()
    host.wait_for_the_end_of("tail")
