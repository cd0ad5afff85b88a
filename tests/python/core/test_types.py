"""What type checkers and editors know of programs, and that the programs run."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import jedi

from .conftest import program_path


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=100, check=False
    )


def test_a_typed_program_passes_mypy(tmp_path) -> None:
    ended = run_module("mypy", "--strict", f"--cache-dir={tmp_path}", str(program_path("typed.py")))
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_plugin_of_mypy_knows_entry_methods(tmp_path) -> None:
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nplugins = weft.mypy\nstrict = true\n")
    program = program_path("typed_calls.py")
    ended = run_module(
        "mypy",
        f"--config-file={settings}",
        f"--cache-dir={tmp_path}",
        "--no-error-summary",
        str(program),
        str(program_path("typed.py")),
    )
    expected = {
        number: line.partition("# E: ")[2]
        for number, line in enumerate(program.read_text().splitlines(), 1)
        if "# E: " in line
    }
    reported = dict(re.findall(r"typed_calls\.py:(\d+): error: (.*)", ended.stdout))
    assert len(reported) == ended.stdout.count("error: "), ended.stdout + ended.stderr
    for number, text in expected.items():
        assert text in reported.pop(str(number), ""), f"line {number}: {text}\n{ended.stdout}"
    assert not reported


def test_a_typed_program_runs(expect_success: Callable[..., str]) -> None:
    assert expect_success(2, "typed.py") == ""


def completions(expression: str) -> set[str]:
    """What Jedi offers in a program behind `expression`, without running it."""
    program = """import weft

class Cell(weft.Chare):
    def put(self, value: int) -> float: ...
    async def get(self) -> int: ...

async def main() -> None:
    cells = weft.Array(Cell, 2)
    """
    lines = (program + expression).split("\n")
    names = jedi.Script("\n".join(lines)).complete(len(lines), len(lines[-1]))
    return {name.name for name in names}


def test_entry_methods_of_proxies_are_completed() -> None:
    assert completions("cells.") >= {"put", "get", "created", "section", "shape"}
    assert completions("cells[0].") >= {"put", "get", "collection", "remove", "with_priority"}
    for method in ("cells.put.", "cells[0].get."):
        assert completions(method) >= {"bind", "call", "send"}


def test_entry_methods_are_completed_in_a_running_program(expect_success: Callable[..., str]) -> None:
    assert expect_success(1, "completion.py") == "all checked\n"
