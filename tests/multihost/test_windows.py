"""One-sided MPI between two hosts: memory that ranks of one host map goes through the network here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import launchers
import pytest
from cluster import Cluster

PROGRAMS = Path(__file__).resolve().parents[1] / "mpi"
WEFT = [sys.executable, "-m", "weft"]


def compile_program(source: str, folder: Path) -> Path:
    program = folder / Path(source).stem
    command = ["mpicc", "-std=gnu99"] if source.endswith(".c") else ["mpicxx", "-std=c++17"]
    subprocess.run([*WEFT, *command, "-O1", PROGRAMS / source, "-o", program], check=True, timeout=120)
    return program


@pytest.mark.parametrize(
    ("source", "arguments", "text"),
    [
        ("windows/random_windows.cpp", ["7", "3", "host"], "random windows of 4 ranks: as the model says"),
        pytest.param(
            *("windows/windows.c", ["unmapped"], "windows of 4 ranks: as expected"),
            marks=pytest.mark.multihost_all,
        ),
        pytest.param(
            *(
                "windows/device_windows.cpp",
                ["emulated"],
                "windows of 4 ranks in emulated memory: as expected",
            ),
            marks=pytest.mark.multihost_all,
        ),
    ],
)
def test_windows_on_two_hosts(
    two_hosts: Cluster, tmp_path: Path, source: str, arguments: list[str], text: str
) -> None:
    program = compile_program(source, tmp_path)
    outcome = two_hosts.hosts[0].run(launchers.prrte(two_hosts, 2, [program, *arguments]))
    assert outcome.exit_code == 0, outcome.stderr
    assert text in outcome.stdout
