"""What the tests of the installed pieces share: the tools of this environment and of the build."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def cmake() -> str:
    """The cmake beside this Python, else the one on PATH."""
    beside = Path(sys.executable).parent / "cmake"
    found = str(beside) if beside.is_file() else shutil.which("cmake")
    assert found, "no cmake; run `make setup`"
    return found


@pytest.fixture(scope="session")
def compiler(build_folder: Path) -> str:
    """The C++ compiler that the build tree uses."""
    cache = (build_folder / "CMakeCache.txt").read_text(encoding="utf-8")
    match = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)
    assert match
    return match.group(1)


@pytest.fixture(scope="session")
def prefix(cmake: str, build_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weft, installed: headers, libraries and the CMake package."""
    folder = tmp_path_factory.mktemp("prefix")
    command = [cmake, "--install", build_folder, "--component", "devel", "--prefix", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def compile_cost() -> ModuleType:
    """The program compile_cost.py. This folder is not on sys.path: its conftest would hide others."""
    spec = importlib.util.spec_from_file_location("compile_cost", Path(__file__).parent / "compile_cost.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
