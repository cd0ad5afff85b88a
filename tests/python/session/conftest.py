"""Programs that start PEs themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

TIMEOUT_S = 60

#: Options of pytest that load the plugin, where Weft is not installed.
PLUGIN = [] if any(entry_points(group="pytest11", name="weft")) else ["-p", "weft._session.pytest_plugin"]

RunProgram = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_program(tmp_path: Path) -> RunProgram:
    """run_program(text, launched=2): runs a program, under `weft run -n 2` with `launched`, without by default."""

    def run(text: str, *arguments: str, launched: int | None = None) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.py").write_text(text)
        launcher = [] if launched is None else ["-m", "weft", "run", "-n", str(launched)]
        return run_command(tmp_path, *launcher, "program.py", *arguments)

    return run


def run_command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs this Python with these arguments in a folder."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
