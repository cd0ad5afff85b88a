"""`weft run --hosts`: hosts that are lost, in jobs that outlive it and in others."""

from __future__ import annotations

import random
import re
import sys
import time
from subprocess import Popen

import launchers
import pytest
from cluster import Cluster, finish
from test_faults import SEEDS

# It steps on until a host is lost, and some steps more. A lost or doubled step changes the sums.
PROGRAM = """\
import os
import weft

class Cell(weft.Chare):
    def __init__(self):
        self.sum = 0
    def host(self):
        return os.uname().nodename
    def add(self, step):
        self.sum += step * (self.index + 1)
        return self.sum

async def main():
    saved = await weft.recovered()
    cells, step = (saved["cells"], saved["step"]) if saved else (weft.Array(Cell, 16), 0)
    first = step
    while weft.recoveries() == 0 or step < first + 20:
        sums = await cells.add.call(step)
        step += 1
        if step % 5 == 0:
            await weft.protect({"cells": cells, "step": step})
        if step == 20:
            print("ready", flush=True)
    right = [sum(range(step)) * (i + 1) for i in range(16)]
    print(weft.num_pes(), weft.recoveries(), "right" if sums == right else f"wrong at {step}: {sums}")
    print(*(await weft.Group(Cell).host.call()))

weft.run(main)
"""

pytestmark = pytest.mark.usefixtures("need_cluster")


def start(cluster: Cluster, *options: object, text: str = PROGRAM) -> Popen[str]:
    program = cluster.folder / "program.py"
    program.write_text(text)
    job = cluster.hosts[0].start(launchers.weft_run(cluster, 2, [sys.executable, program], options=options))
    assert job.stdout is not None
    assert job.stdout.readline() == "ready\n", job.communicate()[1]
    return job


def run_for_a_while(seed: int) -> None:
    """The fault comes at a moment that the seed chooses."""
    print(f"seed {seed}")
    time.sleep(random.Random(seed).uniform(0, 0.3))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("on_loss", "num_pes"), [("restart", 4), ("shrink", 2)])
@pytest.mark.parametrize("fault", ["killed", pytest.param("silent", marks=pytest.mark.multihost_all)])
def test_a_job_outlives_the_loss_of_a_host(
    two_hosts: Cluster, on_loss: str, num_pes: int, fault: str, seed: int
) -> None:
    job = start(two_hosts, "--on-loss", on_loss)
    run_for_a_while(seed)
    two_hosts.hosts[1].kill(noticed=fault == "killed")
    outcome = finish(job, 60)
    hosts = " ".join(["nodeA"] * num_pes)
    assert outcome.stdout == f"{num_pes} 1 right\n{hosts}\n", outcome.stderr
    assert re.search(r"PE 2 \(pid \d+ on nodeB\) is lost with its host", outcome.stderr)
    assert outcome.exit_code == 0


def test_a_spare_host_takes_the_place_of_a_lost_one(need_cluster: None) -> None:
    with Cluster(3) as cluster:
        job = start(cluster, "--on-loss", "restart", "-n", "4")
        cluster.hosts[1].kill()
        outcome = finish(job, 60)
        assert outcome.stdout == "4 1 right\nnodeA nodeA nodeC nodeC\n", outcome.stderr
        assert outcome.exit_code == 0


RAISES = """\
import weft

class Cell(weft.Chare):
    def where(self):
        return weft.my_pe()

async def main():
    cells = weft.Array(Cell, 4)
    await cells.where.call()  # until then a PE may be starting, and the job would end
    print("ready", flush=True)
    lost = None
    while lost is None:
        try:
            await cells[3].where.call()
            await weft.sleep(0.01)
        except weft.LostPE as error:
            lost = error.pe
    await weft.revive(cells[3])
    print("lost", lost, "now", await cells[3].where.call(), "others", await cells[1].where.call())

weft.run(main)
"""


def test_a_program_handles_the_loss_of_a_host(two_hosts: Cluster) -> None:
    job = start(two_hosts, "--on-loss", "raise", text=RAISES)
    two_hosts.hosts[1].kill()
    outcome = finish(job, 60)
    assert outcome.stdout == "lost 3 now 0 others 1\n", outcome
    assert outcome.exit_code == 0


@pytest.mark.parametrize("noticed", [True, pytest.param(False, marks=pytest.mark.multihost_all)])
def test_without_the_option_the_loss_of_a_host_ends_the_job(two_hosts: Cluster, noticed: bool) -> None:
    job = start(two_hosts)
    two_hosts.hosts[1].kill(noticed=noticed)
    outcome = finish(job, 60)
    # `weft run` names the PEs, or a PE names the host, which does not answer for 8 s.
    assert re.search(r"PE [23] .*nodeB|the host nodeB with PEs 2, 3", outcome.stderr), outcome.stderr
    assert outcome.exit_code != 0
    two_hosts.hosts[0].wait_for_the_end_of("python3")
