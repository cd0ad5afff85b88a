"""Global memory on two hosts: programs of tests/python/pgas, whose operations go through the network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import launchers
import pytest
from cluster import Cluster

PROGRAMS = Path(__file__).resolve().parents[1] / "python" / "pgas" / "programs"
KINDS = ("host", "emulated")
TRUSTED = {"WEFT_TRUSTED_NETWORK": "1"}

pytestmark = pytest.mark.usefixtures("need_cluster")


@pytest.fixture(scope="module")
def pair(need_cluster: None) -> Iterator[Cluster]:
    with Cluster(2) as cluster:
        yield cluster


# With two PEs on each host, some ends of a copy are mapped and others are not.
@pytest.mark.parametrize("pes_per_host", [1, 2])
@pytest.mark.parametrize(
    "words",
    ["overlaps.py"]
    + [f"{name}.py {kind}" for name in ("values", "atomics", "global_arrays", "misuse") for kind in KINDS],
)
def test_a_program_that_checks_itself(pair: Cluster, words: str, pes_per_host: int) -> None:
    program, *kind = words.split()
    command = launchers.prrte(pair, pes_per_host, [sys.executable, PROGRAMS / program, *kind], TRUSTED)
    before = pair.bytes_between_hosts()["nodeB"]
    outcome = pair.hosts[0].run(command, timeout_s=200)
    assert outcome.exit_code == 0, outcome.stdout + outcome.stderr
    assert "all checked" in outcome.stdout.splitlines()
    assert pair.bytes_between_hosts()["nodeB"] > before
