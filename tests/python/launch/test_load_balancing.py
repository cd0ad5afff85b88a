"""`weft lb` compares the strategies on a file, and says what is wrong with the file or the command line."""

from __future__ import annotations

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
