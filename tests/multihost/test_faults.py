"""Hosts, processes and links that fail. No PE hangs, and the messages name what was lost.

A seed chooses when a fault happens, and what else a test says. WEFT_FAULT_ROUNDS=COUNT runs the seeds from 0
on; WEFT_FAULT_SEEDS=FIRST:COUNT runs those from FIRST on, so that several pytest processes share the seeds.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import Popen

import launchers
import pytest
from cluster import Cluster, Host, finish

# After a fault every PE has ended: within 15 s (docs/clusters.md) if it gets its core. On a busy machine that
# takes longer; tools/count_faults.py shows how long it took.
END_WITHIN_S = 45.0


def seeds_of(environment: Mapping[str, str]) -> range:
    if chosen := environment.get("WEFT_FAULT_SEEDS"):
        first, count = map(int, chosen.split(":"))
    else:
        first, count = 0, int(environment.get("WEFT_FAULT_ROUNDS", "1"))
    return range(first, first + count)


SEEDS = seeds_of(os.environ)
# Of a process that should have ended: does it run, or has its launcher not taken its exit code?
LEFT = "pid,ppid,stat,etimes,time,wchan:20,args"
TRUSTED = {"WEFT_TRUSTED_NETWORK": "1"}

pytestmark = pytest.mark.usefixtures("need_cluster")


class Job:
    """fault_probe on two hosts, and what it has printed so far: its launcher may hang."""

    def __init__(self, cluster: Cluster, programs: Path, doing: str, pes_per_host: int = 2) -> None:
        self.cluster = cluster
        self.program = "fault_probe"
        self.errors = cluster.folder / "errors"
        command = launchers.prrte(cluster, pes_per_host, [programs / self.program, doing], TRUSTED)
        with self.errors.open("w") as file:
            self.process: Popen[str] = cluster.hosts[0].start(command, stderr=file)
        self.pids: dict[int, int] = {}
        self.fault_at = 0.0
        self.wait_ready(pes_per_host * len(cluster.hosts))

    def wait_ready(self, num_pes: int) -> None:
        assert self.process.stdout is not None
        while len(self.pids) < num_pes:
            line = self.process.stdout.readline()
            assert line, f"the job ended before it was ready:\n{self.errors.read_text()}"
            if match := re.fullmatch(r"ready (\d+) (\d+)\n", line):
                self.pids[int(match[1])] = int(match[2])

    def run_for_a_while(self, seed: int) -> None:
        """The fault comes at a moment that the seed chooses: a condition of the job does not exist for it."""
        print(f"seed {seed}")
        time.sleep(random.Random(seed).uniform(0, 0.3))
        self.fault_at = time.monotonic()

    def wait_for_the_end_of_all_pes(self, hosts: Sequence[Host]) -> None:
        """Within END_WITHIN_S of the end of run_for_a_while()."""
        try:
            for host in hosts:
                host.wait_for_the_end_of(self.program, self.fault_at + END_WITHIN_S - time.monotonic())
        except TimeoutError as error:
            left = "\n".join(host.run(["ps", "-eo", LEFT]).stdout for host in hosts)
            errors = self.errors.read_text()
            # A machine without free memory may stop for seconds.
            pressure = Path("/proc/pressure/memory")
            stalls = pressure.read_text() if pressure.exists() else "unknown\n"
            raise TimeoutError(
                f"{error}\nThe job's errors:\n{errors}\nStalls for memory: {stalls}Processes:\n{left}"
            ) from None
        # tools/count_faults.py reads this.
        print(f"the last PE ended after {time.monotonic() - self.fault_at:.2f} s")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "doing", ["load", *(pytest.param(doing, marks=pytest.mark.multihost_all) for doing in ("idle", "busy"))]
)
def test_a_link_that_is_cut_for_good(two_hosts: Cluster, programs: Path, doing: str, seed: int) -> None:
    job = Job(two_hosts, programs, doing)
    job.run_for_a_while(seed)
    two_hosts.cut(two_hosts.hosts[1])
    job.wait_for_the_end_of_all_pes(two_hosts.hosts)
    # What the PEs of the other host say does not come through.
    errors = job.errors.read_text()
    assert re.search(r"PE [01] on nodeA has lost the host nodeB with PEs 2, 3: no answer for 8 s", errors), (
        errors
    )


@pytest.mark.multihost_all
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("doing", ["load", "idle"])
def test_a_device_that_loses_its_carrier(two_hosts: Cluster, programs: Path, doing: str, seed: int) -> None:
    job = Job(two_hosts, programs, doing)
    job.run_for_a_while(seed)
    two_hosts.unplug(two_hosts.hosts[1])
    job.wait_for_the_end_of_all_pes(two_hosts.hosts)
    assert re.search(r"has lost the host nodeB|PE [23] has failed", job.errors.read_text())


@pytest.mark.multihost_all
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("doing", ["load", "idle"])
def test_a_host_that_dies_and_the_launcher_notices(
    two_hosts: Cluster, programs: Path, doing: str, seed: int
) -> None:
    """mpiexec ends at once, with the PEs' streams, so it has to name the host. Its code may be 0."""
    job = Job(two_hosts, programs, doing)
    job.run_for_a_while(seed)
    two_hosts.hosts[1].kill()
    job.wait_for_the_end_of_all_pes(two_hosts.hosts[:1])
    said = finish(job.process).stdout + job.errors.read_text()
    assert re.search(r"Remote (host|daemon) *:.*\bnodeB\b|lost the host nodeB", said), said


@pytest.mark.multihost_all
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("doing", ["load", "idle", "busy"])
def test_a_host_that_dies_and_nothing_tells(
    two_hosts: Cluster, programs: Path, doing: str, seed: int
) -> None:
    job = Job(two_hosts, programs, doing)
    job.run_for_a_while(seed)
    two_hosts.hosts[1].kill(noticed=False)
    job.wait_for_the_end_of_all_pes(two_hosts.hosts[:1])
    errors = job.errors.read_text()
    assert re.search(r"PE [01] on nodeA has lost the host nodeB with PEs 2, 3: no answer for 8 s", errors), (
        errors
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("doing", ["load", "idle", "busy"])
def test_the_death_of_the_launchers_daemon(two_hosts: Cluster, programs: Path, doing: str, seed: int) -> None:
    job = Job(two_hosts, programs, doing)
    job.run_for_a_while(seed)
    node_b = two_hosts.hosts[1]
    daemons = node_b.pids("prted")
    assert daemons
    # With the first of them the others may end by themselves.
    node_b.run(["kill", "-9", *daemons])
    job.wait_for_the_end_of_all_pes(two_hosts.hosts)
    # mpiexec names the daemon's host. Its exit code may be 0.
    said = finish(job.process).stdout + job.errors.read_text()
    assert re.search(r"Remote (host|daemon) *:.*\bnodeB\b|lost the host nodeB|has lost PE [23]", said), said


@pytest.mark.multihost_all
@pytest.mark.parametrize("seed", SEEDS)
def test_the_death_of_the_launcher(two_hosts: Cluster, programs: Path, seed: int) -> None:
    """The streams of the PEs end with it, so no message of theirs can reach the user."""
    job = Job(two_hosts, programs, "load")
    job.run_for_a_while(seed)
    for pid in two_hosts.hosts[0].pids("prterun") + two_hosts.hosts[0].pids("mpiexec"):
        two_hosts.hosts[0].run(["kill", "-9", pid])
    job.wait_for_the_end_of_all_pes(two_hosts.hosts)


@pytest.mark.multihost_all
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("doing", ["load", "idle", "busy"])
def test_a_killed_pe(two_hosts: Cluster, programs: Path, doing: str, seed: int) -> None:
    job = Job(two_hosts, programs, doing)
    job.run_for_a_while(seed)
    victim = random.Random(seed).randrange(4)
    two_hosts.hosts[victim // 2].signal(job.pids[victim], signal.SIGKILL)
    job.wait_for_the_end_of_all_pes(two_hosts.hosts)
    outcome = finish(job.process)
    assert outcome.exit_code != 0
    # A PE that was sending to it may be the first to say so.
    errors = job.errors.read_text()
    assert re.search(rf"rank {victim} |PE {victim}\b", errors), errors


COUNT = """
import numpy as np
import weft

ROUNDS = 300

class Counter(weft.Chare):
    def __init__(self):
        self.next = {}

    async def stream(self):
        other = self.proxy[(self.index + weft.num_pes() // 2) % weft.num_pes()]
        channel = weft.Channel(self, other)
        got = np.empty(20000, np.int32)
        for number in range(ROUNDS):
            sent = channel.send(np.full(20000, number, np.int32))
            await channel.recv(into=got)
            assert (got == number).all(), "lost or doubled"
            await sent
            other.count(self.index, number)
            if self.index == 0 and number == 20:
                print("under way", flush=True)
            await weft.sleep(0.005)

    def count(self, sender, number):
        seen = self.next.setdefault(sender, set())
        assert number not in seen, f"number {number} of {sender} came twice"
        seen.add(number)

    def counted(self):
        return sorted(len(seen) for seen in self.next.values())

async def main():
    counters = weft.Group(Counter)
    await counters.stream.call()
    await weft.quiescence()
    assert await counters.counted.call() == [[ROUNDS]] * weft.num_pes()
    print("all counted")

weft.run(main)
"""


def counting_job(cluster: Cluster, tmp_path: Path) -> Popen[str]:

    program = tmp_path / "count.py"
    program.write_text(COUNT)
    job = cluster.hosts[0].start(launchers.prrte(cluster, 2, [sys.executable, program], TRUSTED))
    assert job.stdout is not None
    assert job.stdout.readline() == "under way\n"
    return job


@pytest.mark.parametrize("seed", SEEDS)
def test_a_link_that_is_cut_for_a_second(two_hosts: Cluster, tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    for _ in range(5):
        job = counting_job(two_hosts, tmp_path)
        cut_at = time.monotonic()
        two_hosts.cut(two_hosts.hosts[1])
        time.sleep(random.Random(seed).uniform(0.8, 1.2))  # the length of the fault
        two_hosts.mend(two_hosts.hosts[1])
        length_s = time.monotonic() - cut_at
        outcome = finish(job)
        if length_s < 4:  # else this process waited for its core: after 8 s a host is lost
            break
    assert (outcome.exit_code, outcome.stdout) == (0, "all counted\n"), outcome.stderr


@pytest.mark.multihost_all
@pytest.mark.parametrize("seed", SEEDS)
def test_a_link_with_a_small_buffer_loses_nothing(two_hosts: Cluster, tmp_path: Path, seed: int) -> None:
    """The seed chooses the buffer of each host, which holds half a message at most, so it drops parts."""
    print(f"seed {seed}")
    chosen = random.Random(seed)
    for host in two_hosts.hosts:
        two_hosts.shape(host, rate="100mbit", burst="20kb", limit=f"{chosen.randint(20, 40)}kb")
    outcome = finish(counting_job(two_hosts, tmp_path), 100)
    assert (outcome.exit_code, outcome.stdout) == (0, "all counted\n"), outcome.stderr
    dropped = [two_hosts.dropped_packets(host) for host in two_hosts.hosts]
    print(f"dropped packets: {dropped}")
    assert min(dropped) > 0


@pytest.mark.multihost_all
def test_a_busy_pe_is_not_taken_for_a_lost_host(two_hosts: Cluster, tmp_path: Path) -> None:
    """Longer than a lost host takes to be noticed, while the other host sends to it."""

    program = tmp_path / "busy.py"
    program.write_text("""
import time
import weft

class Worker(weft.Chare):
    def compute(self):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            sum(range(10000))
    def take(self, data):
        return len(data)

async def main():
    workers = weft.Group(Worker)
    busy = workers[1].compute.call()
    sizes = [workers[1].take.call(bytes(8_000_000)) for _ in range(20)]
    await busy
    assert [await size for size in sizes] == [8_000_000] * 20
    print("done")

weft.run(main)
""")
    outcome = two_hosts.hosts[0].run(launchers.prrte(two_hosts, 1, [sys.executable, program], TRUSTED))
    assert (outcome.exit_code, outcome.stdout) == (0, "done\n"), outcome.stderr
