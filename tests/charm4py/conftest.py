"""Runs programs of charm4py on Weft's package of that name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
HANG_S = 150

RunProgram = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_program() -> RunProgram:
    """run_program(name, *arguments, pes=2): runs programs/<name>.py with `weft run --charm4py`."""

    def run(name: str, *arguments: str, pes: int = 2, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "weft", "run", "--charm4py", "-n", str(pes)]
        return subprocess.run(
            [*command, str(PROGRAMS / f"{name}.py"), *arguments],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            env={**os.environ, **variables},
        )

    return run
