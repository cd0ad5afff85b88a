"""How the tests run the examples and mini-apps: as their readers do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("examples", "miniapps")

# A program that takes longer hangs.
HANG_S = 150


@pytest.fixture(scope="session")
def program(build_folder: Path) -> Callable[[str, str], Path]:
    """The example or mini-app `name` in `language`: its binary, or its script."""

    def find(name: str, language: str) -> Path:
        if language == "cpp":
            found = [build_folder / folder / name for folder in FOLDERS]
            return next((path for path in found if path.is_file()), found[0])
        (script,) = (path for folder in FOLDERS for path in (ROOT / folder).glob(f"*/{name}.py"))
        return script

    return find


@pytest.fixture
def run_example(program, tmp_path: Path):
    """Runs an example or mini-app on `num_pes` PEs, or without a launcher when that is None.

    Returns the finished process.
    """

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
def import_miniapp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """import_miniapp(folder): makes the modules of a mini-app importable, in this test only.

    Modules of different mini-apps may have the same name.
    """
    folders: list[Path] = []

    def prepare(name: str) -> None:
        folders.append(ROOT / "miniapps" / name)
        monkeypatch.syspath_prepend(str(folders[-1]))

    yield prepare
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).parent in folders:
            del sys.modules[name]
