"""The programs of README.md and docs/ are real, and the pages speak of the API that there is.

Python: a block with `weft.run(` or `weft.pgas.run(` is a whole program. It runs on 1 and on 2 PEs. A ```text
block that follows it is its output on 2 PEs, in any order of the lines. Only a sentence with `weft run -n 2`
that ends with "prints" may stand between them; without it the output is the same on 1 PE. Other blocks are
excerpts: they are valid Python.
C++: a block that begins with #include and has a main is a whole program; tests/install builds and runs that
of docs/pgas.md. Every other block is an excerpt of a program in examples/, which its own tests build and run.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

import weft

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# A program of a page that takes longer hangs.
HANG_S = 150

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    # The ```text block that follows, if there is one.
    output: str | None
    needs_two_pes: bool

    @property
    def is_program(self) -> bool:
        return (
            self.language == "python"
            and re.search(r"^weft\.(pgas\.)?run\(", self.text, re.MULTILINE) is not None
        )

    @property
    def is_cpp_program(self) -> bool:
        return self.language == "cpp" and self.text.startswith("#include") and "int main(" in self.text

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    blocks = []
    for i, match in enumerate(found):
        follower = found[i + 1] if i + 1 < len(found) else None
        between = text[match.end() : follower.start()].strip() if follower else ""
        needs_two_pes = "`weft run -n 2 " in between and between.endswith("prints")
        output = None
        if follower and follower[1] == "text" and (not between or needs_two_pes):
            output = follower[2]
        line = text.count("\n", 0, match.start()) + 1
        blocks.append(Block(page, line, match[1], match[2], output, needs_two_pes))
    return blocks


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PROGRAMS = [block for block in BLOCKS if block.is_program]
PYTHON_EXCERPTS = [block for block in BLOCKS if block.language == "python" and not block.is_program]
CPP_EXCERPTS = [block for block in BLOCKS if block.language == "cpp" and not block.is_cpp_program]


def test_there_is_something_to_test() -> None:
    assert any(block.page.name == "README.md" for block in PROGRAMS)
    assert PYTHON_EXCERPTS
    assert CPP_EXCERPTS


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_program_runs(tmp_path: Path, program: Block, num_pes: int) -> None:
    script = tmp_path / "program.py"
    script.write_text(program.text, encoding="utf-8")
    launcher = [] if num_pes == 1 else ["-m", "weft", "run", "-n", str(num_pes)]
    done = subprocess.run(
        [sys.executable, *launcher, str(script)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout
    if program.output is not None and (num_pes == 2 or not program.needs_two_pes):
        assert sorted(done.stdout.splitlines()) == sorted(program.output.splitlines())


@pytest.mark.parametrize("excerpt", PYTHON_EXCERPTS, ids=str)
def test_python_excerpt_is_valid(excerpt: Block) -> None:
    compile(excerpt.text, str(excerpt), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_whole_programs_in_cpp_have_a_test() -> None:
    assert [block.page.name for block in BLOCKS if block.is_cpp_program] == ["pgas.md"]


@pytest.mark.parametrize("excerpt", CPP_EXCERPTS, ids=str)
def test_cpp_excerpt_is_in_an_example(excerpt: Block) -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "examples").rglob("*.cpp")]
    assert any(excerpt.text in source for source in sources), excerpt.text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_the_python_api_exist(page: Path) -> None:
    text = "\n".join(block.text for block in blocks_of(page) if block.language == "python") + "\n".join(
        re.findall(r"`(weft\.[^`]*)`", page.read_text(encoding="utf-8"))
    )
    names = set(re.findall(r"\bweft\.([A-Za-z_]\w*)", text)) - {"h"}
    missing = sorted(name for name in names if not (hasattr(weft, name) or find_spec(f"weft.{name}")))
    assert not missing, f"{page.name} names {missing}, which weft does not have"


def test_reference_page_names_the_whole_python_api() -> None:
    text = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")
    missing = [name for name in weft.__all__ if f"`weft.{name}" not in text]
    assert not missing
