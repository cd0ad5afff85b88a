"""mpi4py's own test suite on Weft's library, by tools/mpi4py_suite.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SUITE = ROOT / "tools" / "mpi4py_suite.py"
SKIPPED = 77


@pytest.mark.timeout(1000)
@pytest.mark.parametrize("num_processes", [2, pytest.param(4, marks=pytest.mark.long)])
def test_the_modules_that_must_pass_do(num_processes):
    # Building mpi4py takes a minute or two, once.
    done = subprocess.run(
        [sys.executable, SUITE, "-n", str(num_processes)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=ROOT,
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(1000)
@pytest.mark.parametrize("num_processes", [1, 2])
def test_threads_of_python_call_mpi_at_the_same_time(num_processes):
    program = ROOT / "tests/mpi/threads/interpreter.py"
    done = subprocess.run(
        [sys.executable, SUITE, "-n", str(num_processes), "--program", program],
        capture_output=True,
        text=True,
        timeout=900,  # it may have to build mpi4py
        check=False,
        cwd=ROOT,
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "threads of Python: as expected\n"
