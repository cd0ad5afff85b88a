"""The conformance suite of machine and memory kind, over the network devices of two hosts.

The suite runs its PEs in one process, which it moves from the network of one host to that of the other.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from cluster import TOOL_PATH, Cluster

pytestmark = pytest.mark.usefixtures("need_cluster")


def test_each_memory_kind_over_the_network(two_hosts: Cluster, build_folder: Path) -> None:
    suite = build_folder / "tests" / "conformance" / "machine_conformance"
    networks = [two_hosts.network_file(host) for host in two_hosts.hosts]
    # /sys shows the devices of the network in which it is mounted; their names are the same on both hosts.
    in_network = ["nsenter", f"--net={networks[0]}", "unshare", "--mount", "sh", "-c"]
    in_network += ['mount -t sysfs sysfs /sys && exec "$@"', "sh"]
    before = two_hosts.bytes_between_hosts()["nodeB"]
    outcome = subprocess.run(
        [*two_hosts.enter_keeper(), *in_network, suite, "--gtest_brief=1", "--gtest_filter=*ucx_apart*"],
        env={**os.environ, "PATH": TOOL_PATH, "WEFT_TEST_NETWORKS": ",".join(networks)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-4000:]
    assert "[  PASSED  ]" in outcome.stdout
    assert two_hosts.bytes_between_hosts()["nodeB"] - before > 100_000_000
