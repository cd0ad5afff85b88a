"""An idle job leaves the processors to others: the share of a core that all its PEs take together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "idle_probe.py"


@pytest.mark.parametrize("num_pes", [1, 4, 8])
def test_an_idle_job_takes_less_than_a_twentieth_of_a_core(num_pes: int) -> None:
    job = subprocess.run(
        [sys.executable, "-m", "weft", "run", "-n", str(num_pes), str(PROGRAM)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert job.returncode == 0, job.stderr
    assert float(job.stdout) < 0.05
