"""What the tests of the installed pieces share: the tools of this environment and of the build."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

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
