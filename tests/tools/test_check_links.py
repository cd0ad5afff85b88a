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


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a copy of the tool."""
    files = (
        "src/memory/memory.h",
        "src/memory/kinds/kind.h",
        "include/weft/base.h",
        "tests/unit/kind_test.cpp",
    )
    for name in (*files, "tools/check_links.py", "docs/other.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "tools" / "check_links.py").write_text(TOOL.read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def problems_in(tree: Path, page: str, text: str) -> list[str]:
    (tree / page).write_text(text, encoding="utf-8")
    command = [sys.executable, tree / "tools" / "check_links.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[:-1]


@pytest.mark.parametrize(
    "text",
    [
        "`memory.h`, `kinds/kind.h`, `src/memory/kinds/kind.h`, `weft/base.h`, `../memory/memory.h`",
        "In `kinds/`, `kind.h` is one,\nand `kind.h` is no other.",
        "`kinds/<name>.cpp` is like `kind.h`.",
        "[kinds](kinds) has `kind.h`.",
        "| `tests/unit/` | `kind_test.cpp` |",
        "```\n`nothing.h`\n```",
        "`x.json`, `<name>.h`, `Kind.begin`, `a b.h`",
    ],
)
def test_names_of_files_that_a_page_locates_pass(tree: Path, text: str) -> None:
    assert problems_in(tree, "src/memory/README.md", text) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("`kind.h`", "write its folder: src/memory/kinds/kind.h"),
        ("In `kinds/`.\n\n`kind.h`", "write its folder: src/memory/kinds/kind.h"),
        ("- `kinds/`\n- `kind.h`", "write its folder: src/memory/kinds/kind.h"),
        ("| `kinds/` |\n| `kind.h` |", "write its folder: src/memory/kinds/kind.h"),
        ("`kind_test.cpp`", "write its folder: tests/unit/kind_test.cpp"),
        ("`kinds/memory.h`", "correct the name"),
        ("`nothing.h`", "correct the name"),
    ],
)
def test_a_name_that_does_not_lead_to_its_file_is_reported(tree: Path, text: str, problem: str) -> None:
    (found,) = problems_in(tree, "src/memory/README.md", text)
    assert f"/README.md:{len(text.splitlines())}: " in found
    assert found.endswith(problem)


def test_other_pages_may_name_any_file_of_the_tree(tree: Path) -> None:
    assert problems_in(tree, "docs/other.md", "`kind.h` and `kinds/kind.h`") == []
    (found,) = problems_in(tree, "docs/other.md", "`kind.h` and `nothing.h`")
    assert "`nothing.h`" in found
