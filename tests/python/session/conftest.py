"""Programs that start PEs themselves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

TIMEOUT_S = 150

RunProgram = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def plugin_options() -> list[str]:
    """Options of pytest that load the plugin: none where Weft is installed."""
    is_installed = any(entry_points(group="pytest11", name="weft"))
    return [] if is_installed else ["-p", "weft._session.pytest_plugin"]


@pytest.fixture
def run_python(tmp_path: Path) -> RunProgram:
    """run_python(*arguments): runs this Python in the test's folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    return run


@pytest.fixture
def run_program(run_python: RunProgram, tmp_path: Path) -> RunProgram:
    """run_program(text, launched=2): runs a program under `weft run -n 2`, by default without a launcher."""

    def run(text: str, *arguments: str, launched: int | None = None) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.py").write_text(text)
        launcher = [] if launched is None else ["-m", "weft", "run", "-n", str(launched)]
        return run_python(*launcher, "program.py", *arguments)

    return run
