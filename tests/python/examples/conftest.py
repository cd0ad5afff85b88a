"""How the tests run the examples: as their readers do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"

# An example that takes longer hangs.
HANG_S = 60


@pytest.fixture(scope="session")
def program(build_folder: Path) -> Callable[[str, str], Path]:
    """The example `name` in `language`: its binary, or its script."""

    def find(name: str, language: str) -> Path:
        if language == "cpp":
            return build_folder / "examples" / name
        (script,) = EXAMPLES.glob(f"*/{name}.py")
        return script

    return find


@pytest.fixture
def run_example(program, tmp_path: Path):
    """Runs an example on `num_pes` PEs, or without a launcher when that is None; the finished process."""

    def run(name: str, language: str, num_pes: int | None, *arguments: object):
        path = program(name, language)
        argv = [str(path)] if language == "cpp" else [sys.executable, str(path)]
        if num_pes is not None:
            argv = [sys.executable, "-m", "weft", "run", "-n", str(num_pes), str(path)]
        return subprocess.run(
            [*argv, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            cwd=tmp_path,
        )

    return run


@pytest.fixture
def jacobi3d_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the modules of the Jacobi3D example importable, as for its script."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "04_jacobi3d"))
