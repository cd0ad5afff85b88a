"""`weft lb` compares the strategies on a file, and says what is wrong with the file or the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from weft import _core, cli
from weft.launch.load_balancing import _HEAD, _bytes

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def ramp(tmp_path: Path) -> Path:
    """32 objects on 2 PEs, the last with ten times the load of the first; neighbours exchange 100 bytes."""
    objects = [f"object 1 {i} {i // 16} {1 + 9 * i / 31} 1000 moves" for i in range(32)]
    edges = [f"edge {i} {i + 1} 1 100" for i in range(31)]
    path = tmp_path / "ramp.txt"
    path.write_text("\n".join(["weft-load 1", "counts 2 32 31", "pe 0 1", "pe 0 1", *objects, *edges]))
    return path


def test_a_table_of_all_strategies(ramp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lb", str(ramp)]) == 0
    first, head, *rows = capsys.readouterr().out.splitlines()
    assert first == f"{ramp}: 2 PEs, 32 objects, 31 pairs that communicate"
    assert head.split() == list(_HEAD)
    names = [name for name, _ in _core._load_balancing_strategies()]
    assert [row.split()[0] for row in rows] == names
    assert len({len(line) for line in [head, *rows]}) == 1, "the columns are aligned"
    before = [row.split()[1] for row in rows]
    assert before == ["42.2%"] * len(rows)


def test_what_a_strategy_would_do(ramp: Path) -> None:
    counts, rows = _core._compare_strategies(ramp, ["none", "rotate", "greedy_refine"])
    assert counts == (2, 32, 31)
    none, rotate, greedy_refine = rows
    # The loads add up to 176 s. The second half has 125.16 s.
    assert none[0] == "none"
    assert none[1:4] == pytest.approx((0.4222, 0.4222, 125.16), abs=0.005)
    assert none[4:8] == (0, 0, 100, 100)
    assert rotate[4:8] == (32, 32000, 100, 100)
    assert greedy_refine[2] <= 0.05
    assert 0 < greedy_refine[4] < 16
    assert greedy_refine[5] == 1000 * greedy_refine[4]


def test_chosen_strategies_in_their_order(ramp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lb", str(ramp), "--strategy", "refine", "--strategy", "greedy"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split()[0] for row in rows] == ["refine", "greedy"]


def test_an_unknown_strategy_is_refused(ramp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lb", str(ramp), "--strategy", "best"]) == 2
    names = ", ".join(name for name, _ in _core._load_balancing_strategies())
    error = f"there is no load-balancing strategy 'best'; the known ones are {names}"
    assert capsys.readouterr().err == f"weft lb: {error}\n"


STRATEGIES = """
import beside
from weft.load_balancing import CommunicationEdge

def swap(snapshot):
    return [1 - pe for pe in snapshot.pes()]

def heavier_than_5(snapshot):
    assert snapshot.num_pes == 2 and snapshot.pe_speed == [1.0, 1.0]
    assert snapshot.edges[3] == CommunicationEdge(3, 4, 1, 100) and snapshot.objects[16].size_bytes == 1000
    return [int(item.load_s > beside.LIMIT) for item in snapshot.objects]

def broken(snapshot):
    return snapshot.no_such_name

def out_of_range(snapshot):
    return [7 for item in snapshot.objects]

def forgotten(snapshot):
    pass

def short(snapshot):
    return snapshot.pes()[1:]

constant = 1
"""


@pytest.fixture
def strategies(tmp_path: Path) -> Path:
    """A file with functions, and a module beside it that it imports."""
    (tmp_path / "beside.py").write_text("LIMIT = 5.0\n")
    path = tmp_path / "strategies.py"
    path.write_text(STRATEGIES)
    return path


def test_functions_of_a_file_are_compared(
    ramp: Path, strategies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"{strategies}:swap", "none", f"{strategies}:heavier_than_5"]
    command = ["lb", str(ramp)]
    for name in names:
        command += ["--strategy", name]
    assert cli.main(command) == 0
    rows = [row.split() for row in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == names
    moves = [row[5] for row in rows]
    # 1 + 9 i / 31 is above 5 from i = 14 on.
    assert moves == ["32", "0", "2"]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("none", ["has no function 'none' at its top level"]),
        ("constant", ["has no function 'constant' at its top level"]),
        ("broken", ["broken has failed: AttributeError: ", "no_such_name", "in broken"]),
        ("forgotten", ["forgotten has failed: TypeError: ", "it has returned the NoneType None"]),
        ("short", ["short has failed: ValueError: ", "it has returned 31 for 32 objects"]),
        ("out_of_range", ["out_of_range' is wrong: a placement puts object 0 of collection 1 on PE 7"]),
    ],
)
def test_a_function_that_fails_is_named(
    ramp: Path, strategies: Path, capsys: pytest.CaptureFixture[str], function: str, words: list[str]
) -> None:
    assert cli.main(["lb", str(ramp), "--strategy", f"{strategies}:{function}"]) == 2
    error = capsys.readouterr().err
    for word in ["weft lb: ", str(strategies), *words]:
        assert word in error


def test_a_file_of_functions_that_cannot_be_imported(
    ramp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.py"
    assert cli.main(["lb", str(ramp), "--strategy", f"{path}:f"]) == 2
    assert capsys.readouterr().err == f"weft lb: --strategy {path}: there is no such file\n"
    for text, words in [("1 / 0", "ZeroDivisionError"), ("def", "SyntaxError"), ("exit(3)", "SystemExit")]:
        path.write_text(text)
        assert cli.main(["lb", str(ramp), "--strategy", f"{path}:f"]) == 2
        error = capsys.readouterr().err
        assert f"{path}: the file cannot be imported:\nTraceback" in error
        assert words in error


def test_a_damaged_file_is_refused_with_its_line(ramp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ramp.write_text(ramp.read_text().replace("pe 0 1", "pe 0 fast", 1))
    assert cli.main(["lb", str(ramp)]) == 2
    expected = f"{ramp}:3: expected line 1 of 2 of the form 'pe BACKGROUND_S SPEED', found 'pe 0 fast'"
    assert capsys.readouterr().err == f"weft lb: {expected}\n"


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.txt"
    assert cli.main(["lb", str(path)]) == 2
    expected = f"the load file {path} cannot be read: No such file or directory"
    assert capsys.readouterr().err == f"weft lb: {expected}\n"


def test_the_page_names_every_strategy_and_its_example_is_a_load_file(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "load-balancing.md").read_text()
    for name, _ in _core._load_balancing_strategies():
        assert f"| `{name}` |" in page
    example = page[page.index("    weft-load 1\n") :].split("\n\n", 1)[0]
    path = tmp_path / "example.txt"
    path.write_text("\n".join(line[4:] for line in example.splitlines()))
    assert _core._compare_strategies(path, ["greedy"])[0] == (2, 3, 1)


def test_the_strategy_of_the_page_is_one(ramp: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "load-balancing.md").read_text()
    (source,) = [text for text in page.split("```python\n") if text.startswith("import weft\n")]
    path = tmp_path / "strategies.py"
    path.write_text(source.split("```")[0])
    # In a process of its own, because it registers the function.
    ended = subprocess.run(
        [sys.executable, "-m", "weft", "lb", str(ramp), "--strategy", f"{path}:heaviest_first"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    after = float(ended.stdout.splitlines()[2].split()[2].rstrip("%"))
    assert after < 1


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1234567, "1.23 MB"),
        (999999, "1 MB"),
        (5 * 10**15, "5 PB"),
    ],
)
def test_sizes_are_short(size: int, text: str) -> None:
    assert _bytes(size) == text
