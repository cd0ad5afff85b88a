"""tools/public_codes.py: what it says when a code cannot run, and what its runs print."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module, which builds in another folder."""
    monkeypatch.syspath_prepend(str(TOOLS))
    module = importlib.import_module("public_codes")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    return module


def run(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["public_codes.py", *words])
    return int(tool.main())


def test_an_unknown_code_is_refused_with_the_names(tool, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(tool, monkeypatch, "mpi4fft")
    assert "unknown: mpi4fft; there are mpi4py, mpi4py-fft, mpi4jax" in capsys.readouterr().err


def test_a_header_that_is_missing_is_named_with_its_package(tool, monkeypatch, capsys):
    code = dataclasses.replace(tool.CODES[0], header=("no/such.h", "libno-dev"))
    monkeypatch.setattr(tool, "CODES", (code,))
    assert run(tool, monkeypatch, "mpi4py-fft") == tool.SKIPPED
    assert "SKIPPED: mpi4py-fft: it needs no/such.h: install Debian's package libno-dev" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(("status", "outcome"), [(0, "passed"), (3, "1 of 2 jobs failed")])
def test_a_run_prints_its_outcome_and_what_has_failed(tool, capsys, status, outcome):
    jobs = [[sys.executable, "-c", f"print('said'); raise SystemExit({code})"] for code in (0, status)]
    assert tool.run_jobs("some-code", 2, jobs, {}) == (status == 0)
    printed = capsys.readouterr().out
    assert printed.startswith(f"some-code on 2 processes: {outcome} (")
    assert ("said" in printed) == (status != 0)
