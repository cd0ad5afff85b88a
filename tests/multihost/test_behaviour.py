"""Programs on two hosts: messages, channels, collectives, quiescence, migration; and odd networks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import launchers
import pytest
from cluster import Cluster, Network, finish

ROOT = Path(__file__).resolve().parents[2]
TRUSTED = {"WEFT_TRUSTED_NETWORK": "1"}

pytestmark = pytest.mark.usefixtures("need_cluster")


@pytest.fixture(scope="module")
def pair(need_cluster: None):
    with Cluster(2) as cluster:
        yield cluster


def run(cluster: Cluster, *program: object, pes_per_host: int = 2, **settings: str):
    command = launchers.prrte(cluster, pes_per_host, program, {**TRUSTED, **settings})
    return cluster.hosts[0].run(command, timeout_s=200)


def expect_success(outcome) -> str:
    assert outcome.exit_code == 0, outcome.stderr
    # PRRTE prints warnings of its own now and then, "[nodeA:00012] plm:ssh: ...".
    assert [line for line in outcome.stderr.splitlines() if not re.match(r"\[node\w:\d+\] plm:", line)] == []
    return outcome.stdout


@pytest.mark.parametrize("path", ["auto", "tagged", "active"])
@pytest.mark.parametrize("kind", ["host", "emulated"])
def test_payloads_of_every_size_arrive_whole(pair: Cluster, programs: Path, kind: str, path: str) -> None:
    expect_success(run(pair, programs / "payload_probe", kind, WEFT_MESSAGING_PATH=path))


@pytest.mark.parametrize("memory", ["host", "emulated"])
@pytest.mark.parametrize("language", ["cpp", "python"])
def test_jacobi3d_is_right(pair: Cluster, build_folder: Path, language: str, memory: str) -> None:
    program = {
        "cpp": [build_folder / "miniapps" / "jacobi3d"],
        "python": [sys.executable, ROOT / "miniapps" / "jacobi3d" / "jacobi3d.py"],
    }[language]
    options = ["--odf", 4, "--size", 32, "--iterations", 20, "--verify", "--memory", memory]
    outcome = run(pair, *program, *options)
    assert outcome.exit_code == 0, outcome.stderr
    assert "verify" in outcome.stdout


# Those in both languages. A checkpoint needs a folder. Streams of devices reach the memory of one host alone.
EXAMPLES = sorted(path.parent.name[3:] for path in (ROOT / "examples").glob("[0-9]*/*.cpp"))
ONE_HOST = ("stream_signals", "queued_channels")
EXAMPLES = [name for name in EXAMPLES if name not in ("checkpoint", *ONE_HOST)]


@pytest.mark.multihost_all
@pytest.mark.parametrize("name", ONE_HOST)
def test_an_example_for_one_host_says_so(pair: Cluster, build_folder: Path, name: str) -> None:
    outcome = run(pair, build_folder / "examples" / name)
    assert outcome.exit_code != 0
    assert "not reach" in outcome.stderr


@pytest.mark.multihost_all
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_ends_well(pair: Cluster, build_folder: Path, name: str) -> None:
    outcome = run(pair, build_folder / "examples" / name)
    assert outcome.exit_code == 0, outcome.stderr
    (script,) = (ROOT / "examples").glob(f"[0-9]*_{name}/*.py")
    outcome = run(pair, sys.executable, script)
    assert outcome.exit_code == 0, outcome.stderr


def test_tcp_between_hosts_and_shared_memory_within(pair: Cluster, programs: Path) -> None:
    outcome = run(pair, programs / "payload_probe", "host", WEFT_STATS="1")
    assert outcome.exit_code == 0, outcome.stderr
    assert "tcp/eth0" in outcome.stderr
    assert "posix/memory" in outcome.stderr or "weft-queue/memory" in outcome.stderr


TWO_NETWORKS = {
    "both IPv4": (Network(0), Network(1)),
    "the second IPv6 only": (Network(0), Network(1, ipv4=False, ipv6=True)),
}


@pytest.mark.parametrize("networks", TWO_NETWORKS.values(), ids=TWO_NETWORKS.keys())
def test_the_device_that_the_user_names(programs: Path, networks: tuple[Network, Network]) -> None:
    with Cluster(2, networks=networks) as cluster:
        before = cluster.bytes_between_hosts(1)["nodeB"]
        command = launchers.hydra(
            cluster, 2, [programs / "payload_probe", "host"], {**TRUSTED, "UCX_NET_DEVICES": "eth1"}
        )
        outcome = cluster.hosts[0].run(command)
        assert outcome.exit_code == 0, outcome.stderr
        assert cluster.bytes_between_hosts(1)["nodeB"] - before > 1_000_000


def test_a_network_that_leads_nowhere_is_an_error_in_words(programs: Path) -> None:
    """UCX chooses a device without trying it.

    The sentence of the PE that sends may be lost, since Hydra ends all when one ends. That about links comes
    first.
    """
    with Cluster(2, networks=[Network(0), Network(1)]) as cluster:
        program = [programs / "payload_probe", "host"]
        for host in cluster.hosts:
            cluster.cut(host, network=1)
        command = launchers.hydra(cluster, 2, program, {**TRUSTED, "UCX_NET_DEVICES": "eth1"})
        outcome = cluster.hosts[0].run(command)
        assert outcome.exit_code != 0
        told = outcome.stderr + outcome.stdout
        assert re.search(r"no TCP connection with PE \d on node[AB].*UCX_NET_DEVICES", told), outcome


def test_different_builds_are_refused_in_words(programs: Path, build_folder: Path, pair: Cluster) -> None:
    ring = build_folder / "examples" / "ring"
    script = f"test $(hostname) = nodeA && exec {ring}; exec {programs / 'fault_probe'} idle"
    outcome = run(pair, "sh", "-c", script)
    assert outcome.exit_code != 0
    assert re.search(r"PE \d and PE \d cannot be in one job: they differ in", outcome.stderr), outcome.stderr


def test_a_strangers_bytes_change_nothing(pair: Cluster, tmp_path: Path) -> None:
    """A process outside of the job writes to every port that listens on the hosts, and the job goes on."""
    program = tmp_path / "job.py"
    program.write_text("""
import sys, weft

class Worker(weft.Chare):
    def add(self, number):
        return number + self.index

async def main():
    workers = weft.Group(Worker)
    print("ready", flush=True)
    total = 0
    for round in range(400):
        total += sum(await workers.add.call(round))
        await weft.sleep(0.002)
    print(total)

weft.run(main)
""")
    stranger = tmp_path / "stranger.py"
    stranger.write_text("""
import random, socket, sys
source = random.Random(7)
ports = {int(line.split()[1].rsplit(":", 1)[1], 16) for table in ("tcp", "tcp6")
         for line in open("/proc/net/" + table).read().splitlines()[1:] if line.split()[3] == "0A"}
for port in ports:
    for size in (0, 1, 8, 64, 5000):
        try:
            with socket.create_connection((sys.argv[1], port), 1) as connection:
                connection.sendall(source.randbytes(size))
        except OSError:
            pass
print(len(ports))
""")
    command = launchers.prrte(pair, 2, [sys.executable, program], TRUSTED)
    job = pair.hosts[0].start(command)
    assert job.stdout is not None
    assert job.stdout.readline() == "ready\n"
    for host in pair.hosts:
        assert int(host.check([sys.executable, stranger, host.name])) > 0
    outcome = finish(job)
    expected = sum(4 * number + 6 for number in range(400))
    assert (outcome.exit_code, outcome.stdout) == (0, f"{expected}\n"), outcome.stderr
