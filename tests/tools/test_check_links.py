"""tools/check_links.py finds what a reader of the pages would stumble over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_links.py"


def run(page: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, page], capture_output=True, text=True, check=False)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "other.md").write_text("# Some title, here\n", encoding="utf-8")
    return tmp_path / "page.md"


def test_good_links_pass(page: Path) -> None:
    page.write_text(
        "# Top\n[a](other.md) [b](other.md#some-title-here) [c](#top) [d](https://example.org/x)\n"
        "`tools/check_links.py` and `src/`\n```\n[not a link](nowhere.md)\n```\n",
        encoding="utf-8",
    )
    assert run(page).returncode == 0


@pytest.mark.parametrize(
    "line",
    ["[a](nowhere.md)", "![a](nowhere.png)", "[a](other.md#wrong)", "[a](#wrong)", "`tools/no_such_tool.py`"],
)
def test_a_broken_link_is_reported_with_its_line(page: Path, line: str) -> None:
    page.write_text(f"# Top\n\nSee {line}.\n", encoding="utf-8")
    done = run(page)
    assert done.returncode == 1
    assert f"{page}:3: " in done.stdout
