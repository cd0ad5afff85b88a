"""Broadcasts and reductions cross the link to a host once: the bytes that the network devices count.

Each program repeats one collective operation: on 16 MiB, and in MPI on small data. It prints what the last
host has received and sent meanwhile, so the start of the job does not count.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import launchers
import pytest
from cluster import Cluster

TRUSTED = {"WEFT_TRUSTED_NETWORK": "1"}
PES_PER_HOST = 4
SIZE_BYTES = 16 << 20
REPEATS = 3
# TCP's and UCX's headers, and the messages of the collective itself.
OVERHEAD = 1.05
# Of MPI: below the sizes at which the algorithms change.
SMALL_BYTES = 8192
SMALL_REPEATS = 200
SMALL_OVERHEAD = 1.15
MPI_PROGRAM = Path(__file__).resolve().parents[1] / "mpi" / "link_bytes.c"

pytestmark = pytest.mark.usefixtures("need_cluster")


@pytest.fixture(scope="module")
def pair(need_cluster: None):
    with Cluster(2) as cluster:
        yield cluster


PROGRAM = """
import sys

import numpy as np

import weft

SIZE = {size}
ROOT = int(sys.argv[2])

def counted(name):
    with open("/sys/class/net/eth0/statistics/" + name) as file:
        return int(file.read())

class Member(weft.Chare):
    def __init__(self):
        self.values = np.full(SIZE // 8, self.index + 1.0)
    def take(self, data):
        assert len(data) == SIZE, len(data)
    async def broadcast(self):
        await self.proxy.take.call(b"x" * SIZE)
    async def nocopy(self):
        data = np.ones(SIZE, np.uint8)
        await self.proxy.take.call(weft.nocopy(data))
    def give(self, done):
        self.contribute(self.values, weft.Reducer.sum, done)
    async def add_up(self):
        total = await self.allreduce(self.values, weft.Reducer.sum)
        assert total[0] == total[-1] == weft.num_pes() * (weft.num_pes() + 1) / 2
    def bytes(self):
        return [counted("rx_bytes"), counted("tx_bytes")]

class Movable(Member):
    pass

async def main():
    what = sys.argv[1]
    members = weft.Array(Movable, weft.num_pes()) if what == "array_allreduce" else weft.Group(Member)
    total = weft.num_pes() * (weft.num_pes() + 1) / 2
    async def once():
        if what in ("broadcast", "nocopy"):
            await getattr(members[ROOT], what).call()
        elif what == "reduce":
            done = weft.Future()
            members.give(done)
            assert (await done)[-1] == total
        else:
            await members.add_up.call()
    await once()  # connections
    before = await members.bytes.call()
    for _ in range({repeats}):
        await once()
    after = await members.bytes.call()
    grown = [[late - early for late, early in zip(*two)] for two in zip(after, before)]
    print(*grown[-1])

weft.run(main)
"""

TEAM_PROGRAM = """
import sys

import numpy as np

import weft
from weft import pgas

SIZE = {size}
ROOT = int(sys.argv[2])

def counted(name):
    with open("/sys/class/net/eth0/statistics/" + name) as file:
        return int(file.read())

async def main(world):
    values = np.full(SIZE // 8, world.rank + 1.0)
    async def once():
        values[:] = world.rank + 1.0
        if sys.argv[1] == "broadcast":
            await world.broadcast_in_place(values, ROOT)
            assert values[0] == values[-1] == ROOT + 1.0
        elif sys.argv[1] == "allgather":
            part = bytes([world.rank]) * (SIZE // {pes_per_host})
            parts = await world.allgather(part)
            assert [part[-1] for part in parts] == list(range(world.size))
        else:
            await world.allreduce_in_place(values, weft.Reducer.sum)
            assert values[0] == values[-1] == world.size * (world.size + 1) / 2
    await once()
    await world.barrier()
    before = [counted("rx_bytes"), counted("tx_bytes")]
    await world.barrier()  # No data crosses before all members have read the counters.
    for _ in range({repeats}):
        await once()
    await world.barrier()
    after = [counted("rx_bytes"), counted("tx_bytes")]
    if world.rank == world.size - 1:
        print(*(late - early for late, early in zip(after, before)))

pgas.run(main)
"""


def bytes_of_the_last_host(cluster: Cluster, folder: Path, text: str, *arguments: object) -> list[float]:
    """What it has received and sent for one operation, in sizes of the data."""
    program = folder / "program.py"
    program.write_text(text.format(size=SIZE_BYTES, repeats=REPEATS, pes_per_host=PES_PER_HOST))
    return crossed_by(cluster, [sys.executable, program, *arguments], REPEATS * SIZE_BYTES)


def crossed_by(cluster: Cluster, argv: list[object], size_bytes: int) -> list[float]:
    """What the program prints, in sizes of the data."""
    command = launchers.prrte(cluster, PES_PER_HOST, argv, TRUSTED)
    outcome = cluster.hosts[0].run(command, timeout_s=200)
    assert outcome.exit_code == 0, outcome.stderr
    # UCX 1.22 prints "recv(-1) failed" on standard output of some jobs that end on a busy machine.
    numbers = [line for line in outcome.stdout.splitlines() if re.fullmatch(r"[\d ]+", line)]
    assert len(numbers) == 1, outcome
    counts = [int(word) / size_bytes for word in numbers[0].split()]
    assert len(counts) == 2, outcome.stdout
    print(*argv[1:], counts)
    return counts


# PEs 0 to 3 are on the first host. From PE 6 the data goes the other way.
@pytest.mark.parametrize("root", [0, 2, 6])
@pytest.mark.parametrize("how", ["broadcast", "nocopy"])
def test_a_broadcast_comes_to_a_host_once(pair: Cluster, tmp_path: Path, how: str, root: int) -> None:
    received, sent = bytes_of_the_last_host(pair, tmp_path, PROGRAM, how, root)
    across, back = (received, sent) if root < PES_PER_HOST else (sent, received)
    assert 1 <= across <= OVERHEAD
    assert back < OVERHEAD - 1


def test_a_reduction_leaves_a_host_once(pair: Cluster, tmp_path: Path) -> None:
    received, sent = bytes_of_the_last_host(pair, tmp_path, PROGRAM, "reduce", 0)
    assert 1 <= sent <= OVERHEAD
    assert received < OVERHEAD - 1


@pytest.mark.parametrize("how", ["allreduce", "array_allreduce"])
def test_an_allreduce_crosses_the_link_once_each_way(pair: Cluster, tmp_path: Path, how: str) -> None:
    for crossed in bytes_of_the_last_host(pair, tmp_path, PROGRAM, how, 0):
        assert 1 <= crossed <= OVERHEAD


def test_the_collectives_of_teams_do_too(pair: Cluster, tmp_path: Path) -> None:
    received, sent = bytes_of_the_last_host(pair, tmp_path, TEAM_PROGRAM, "broadcast", 1)
    assert 1 <= received <= OVERHEAD
    assert sent < OVERHEAD - 1
    for what in ("allreduce", "allgather"):
        for crossed in bytes_of_the_last_host(pair, tmp_path, TEAM_PROGRAM, what, 0):
            assert 1 <= crossed <= OVERHEAD


@pytest.fixture(scope="module")
def mpi_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("link_bytes") / "link_bytes"
    command = [sys.executable, "-m", "weft", "mpicc", "-std=c99", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, MPI_PROGRAM, "-o", program], check=True, timeout=60)
    return program


@pytest.mark.parametrize("root", [0, 6])
def test_small_broadcasts_and_reductions_of_mpi_do_too(pair: Cluster, mpi_program: Path, root: int) -> None:
    def crossed(what: str) -> list[float]:
        argv = [mpi_program, what, SMALL_BYTES, SMALL_REPEATS, root]
        return crossed_by(pair, argv, SMALL_REPEATS * SMALL_BYTES)

    def to_and_from_the_root(what: str) -> list[float]:
        received, sent = crossed(what)
        return [sent, received] if root < PES_PER_HOST else [received, sent]

    to_root, from_root = to_and_from_the_root("broadcast")
    assert 1 <= from_root <= SMALL_OVERHEAD
    assert to_root < SMALL_OVERHEAD - 1
    to_root, from_root = to_and_from_the_root("reduce")
    assert 1 <= to_root <= SMALL_OVERHEAD
    assert from_root < SMALL_OVERHEAD - 1


@pytest.mark.parametrize("what", ["allreduce", "interleaved_allreduce", "allgather", "interleaved_allgather"])
def test_small_exchanges_of_mpi_cross_the_link_once_each_way(
    pair: Cluster, mpi_program: Path, what: str
) -> None:
    argv = [mpi_program, what, SMALL_BYTES, SMALL_REPEATS, 0]
    blocks = PES_PER_HOST if what.endswith("allgather") else 1
    for count in crossed_by(pair, argv, SMALL_REPEATS * SMALL_BYTES * blocks):
        assert 1 <= count <= SMALL_OVERHEAD
