"""Mini-apps that lose PEs in random steps end with the bits of a run that has lost none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "killed_miniapp.py"
MINIAPPS = Path(__file__).resolve().parents[2] / "miniapps"
# A job that takes longer hangs.
HANG_S = 150
LOSSES = 3
JACOBI = [MINIAPPS / "jacobi3d" / "jacobi3d.py", "--kernel", "numpy", "--model", "channel", "--size", 12]
JACOBI += ["--odf", 2, "--iterations", 40, "--protect-every", 5]
PIC = [MINIAPPS / "pic" / "pic.py", "--kernel", "numpy", "--size", 20, "--particles", 500, "--ratio", 0.8]
PIC += ["--odf", 4, "--steps", 40, "--lb-every", 4, "--protect-every", 5]


def run_killed(losses: int, arguments: list[object]) -> tuple[str, int]:
    """The checksum of the result, and how often the job has begun again."""
    command = [sys.executable, "-m", "weft", "run", "-n", 3, "--on-loss", "restart", PROGRAM, 7, losses]
    ended = subprocess.run(
        [str(word) for word in [*command, *arguments]], capture_output=True, text=True, timeout=HANG_S
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = re.search(r"(?: |checksum )([0-9a-f]{16})$", ended.stdout, re.MULTILINE)
    assert found, ended.stdout
    return found[1], ended.stderr.count("the job begins again")


@pytest.mark.parametrize("memory", ["host", "emulated"])
@pytest.mark.parametrize("arguments", [JACOBI, PIC], ids=["jacobi3d", "pic"])
def test_the_same_bits_after_losses(arguments: list[object], memory: str) -> None:
    arguments = [*arguments, "--memory", memory]
    expected, recoveries = run_killed(0, arguments)
    assert recoveries == 0
    assert run_killed(LOSSES, arguments) == (expected, LOSSES)
