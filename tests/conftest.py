"""What all Python tests share: where the compiled programs are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def build_folder() -> Path:
    """The build tree with the compiled examples and test programs; WEFT_BUILD_FOLDER names another one."""
    folder = Path(os.environ.get("WEFT_BUILD_FOLDER", ROOT / "build" / "release")).resolve()
    if not (folder / "CMakeCache.txt").is_file():
        pytest.fail(
            f"{folder} is no build tree; run `make test-python`, or set WEFT_BUILD_FOLDER", pytrace=False
        )
    return folder
