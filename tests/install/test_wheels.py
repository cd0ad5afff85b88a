"""What the wheels contain: users get no tools for measuring Weft, which are in weft-bench."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from weft.cli import main

ROOT = Path(__file__).resolve().parents[2]


def contents(distribution: str) -> set[str]:
    """The folders and modules that a wheel has installed into site-packages."""
    try:
        files = metadata.files(distribution)
    except metadata.PackageNotFoundError:
        pytest.skip(f"NOT TESTED: {distribution} is not installed from a wheel; `make test-python` does that")
    assert files
    inside = [file for file in files if file.parts[0] != ".." and not file.parts[0].endswith(".dist-info")]
    return {"/".join(file.parts[:2]) for file in inside if file.suffix != ".pyc"}


def test_the_wheel_of_weft_is_the_package_without_the_tools() -> None:
    installed = contents("weft")
    assert {
        "weft/__init__.py",
        "weft/_cli",
        "weft/cli.py",
        "weft/include",
        "weft/launch",
        "weft/py.typed",
    } <= installed
    assert {"weft/bench", "weft/study"}.isdisjoint(installed)
    assert {path.split("/")[0] for path in installed} == {"weft"}


def test_the_wheel_of_weft_bench_has_both_tools() -> None:
    installed = contents("weft-bench")
    assert {"weft_bench/cli.py", "weft_bench/study"} <= installed
    assert {path.split("/")[0] for path in installed} == {"weft_bench"}


def test_only_the_command_line_knows_weft_bench() -> None:
    sources = [path for path in (ROOT / "python").rglob("*.py") if "weft_bench" in path.read_text("utf-8")]
    assert [path.name for path in sources] == ["cli.py"]


@pytest.mark.parametrize("command", ["bench", "study"])
def test_without_weft_bench_a_sentence_says_how_to_install_it(monkeypatch, capsys, command: str) -> None:
    monkeypatch.setitem(sys.modules, "weft_bench", None)
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"weft {command}: the package weft-bench is not installed; in a clone of Weft run "
        "`pip install ./benchmarks`\n"
    )


@pytest.mark.parametrize("there", [True, False])
def test_help_lists_the_tools_that_are_there(monkeypatch, capsys, there: bool) -> None:
    if not there:
        monkeypatch.setitem(sys.modules, "weft_bench", None)
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    listed = {words[0] for line in lines if (words := line.split())}
    assert "lb" in listed
    assert ({"bench", "study"} <= listed) == there
