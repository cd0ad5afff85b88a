"""The stubs: a typed program passes mypy, and runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from .conftest import program_path


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=100, check=False
    )


def test_a_typed_program_passes_mypy(tmp_path) -> None:
    ended = run_module("mypy", "--strict", f"--cache-dir={tmp_path}", str(program_path("typed.py")))
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_typed_program_runs(expect_success: Callable[..., str]) -> None:
    assert expect_success(2, "typed.py") == ""
