"""Load balancing at sync points."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2, 4])
def test_a_ramp_is_balanced_in_one_step(expect_success: Callable[..., str], num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "balancing.py", "ramp")


def test_pes_that_decide_together_balance_a_ramp(expect_success: Callable[..., str]) -> None:
    # On more PEs diffusion may leave more than the 5 % that the program asks for.
    assert "all checked" in expect_success(2, "balancing.py", "ramp", environment={"WEFT_LB": "diffusion"})


@pytest.mark.parametrize("strategy", ["greedy_refine", "random", "diffusion"])
@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_each_chare_is_resumed_once_in_each_step(
    expect_success: Callable[..., str], num_pes: int, strategy: str
) -> None:
    ended = expect_success(num_pes, "balancing.py", "steps", environment={"WEFT_LB": strategy})
    assert "all checked" in ended


@pytest.mark.parametrize("num_pes", [1, 2])
def test_the_load_is_the_time_of_the_entry_methods(expect_success: Callable[..., str], num_pes: int) -> None:
    # greedy has no tolerance, in which a time that is much longer than the other one would stay.
    ended = expect_success(num_pes, "balancing.py", "measured", environment={"WEFT_LB": "greedy"})
    assert "all checked" in ended


def test_chares_that_cannot_move_stay(expect_success: Callable[..., str]) -> None:
    assert "all checked" in expect_success(3, "balancing.py", "still", environment={"WEFT_LB": "rotate"})


def test_what_cannot_be_says_why(expect_success: Callable[..., str]) -> None:
    assert "all checked" in expect_success(2, "balancing.py", "refused")


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize("which", ["periodic", "periodic_sparse"])
def test_chares_move_periodically(expect_success: Callable[..., str], num_pes: int, which: str) -> None:
    assert "all checked" in expect_success(
        num_pes, "balancing.py", which, environment={"WEFT_LB_PERIOD": "0.002"}
    )


def test_without_a_period_chares_stay(expect_success: Callable[..., str]) -> None:
    assert "all checked" in expect_success(2, "balancing.py", "no_period")


@pytest.mark.parametrize("num_pes", [1, 3])
@pytest.mark.parametrize("strategy", ["rotate", "diffusion"])
def test_a_collection_may_be_destroyed_in_a_step(
    expect_success: Callable[..., str], num_pes: int, strategy: str
) -> None:
    ended = expect_success(num_pes, "balancing.py", "destroyed", environment={"WEFT_LB": strategy})
    assert "all checked" in ended


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("raising", ["Raising[0] on PE", "in resume_from_sync()", "no way on"]),
        ("async", ["Async.resume_from_sync is a coroutine", "cannot wait"]),
    ],
)
def test_a_failing_resume_ends_the_job(run_job: RunJob, which: str, words: list[str]) -> None:
    ended = run_job(2, "balancing.py", "failing", which)
    assert ended.returncode == 1
    for word in words:
        assert word in ended.stderr, ended.stderr


@pytest.mark.parametrize("strategy", ["refine", "diffusion"])
def test_verbose_prints_a_line_for_each_step(run_job: RunJob, strategy: str) -> None:
    environment = {"WEFT_LB": strategy, "WEFT_LB_VERBOSE": "1"}
    ended = run_job(2, "balancing.py", "ramp", environment=environment)
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stderr.splitlines()
    found = re.fullmatch(
        rf"weft: load balancing of Block, step 1: {strategy}, imbalance ([\d.]+)% before, ([\d.]+)% after, "
        r"(\d+) moves, (\d+) bytes, decision [\d.]+ ms, step [\d.]+ ms",
        line,
    )
    assert found is not None, line
    before, after = (float(text) / 100 for text in found.group(1, 2))
    printed = re.search(r"imbalance ([\d.]+) ([\d.]+)", ended.stdout)
    assert printed is not None
    assert before == pytest.approx(float(printed.group(1)), abs=1e-3)
    assert after == pytest.approx(float(printed.group(2)), abs=1e-3)
    # Each chare has an array of 800 bytes.
    assert int(found.group(3)) > 0
    assert int(found.group(4)) > 800 * int(found.group(3))


def test_recorded_loads_are_read_by_weft_lb(run_job: RunJob, tmp_path: Path) -> None:
    from weft import cli

    loads = tmp_path / "loads"
    ended = run_job(2, "balancing.py", "ramp", environment={"WEFT_LB_RECORD": str(loads)})
    assert ended.returncode == 0, ended.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loads.1"]
    text = Path(f"{loads}.1").read_text()
    assert "counts 2 32 0" in text
    assert cli.main(["lb", f"{loads}.1", "--strategy", "greedy"]) == 0


@pytest.mark.parametrize("num_pes", [1, 2])
def test_an_unknown_strategy_is_refused_with_the_names(run_job: RunJob, num_pes: int) -> None:
    from weft._cli.settings import STRATEGIES

    ended = run_job(num_pes, "balancing.py", "ramp", environment={"WEFT_LB": "fair"})
    assert ended.returncode != 0
    assert "WEFT_LB" in ended.stderr
    for name in STRATEGIES:
        assert name in ended.stderr


def test_weft_run_knows_all_strategies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from weft import cli
    from weft._cli.settings import STRATEGIES

    loads = tmp_path / "loads"
    loads.write_text("weft-load 1\ncounts 1 1 0\npe 0 1\nobject 1 0 0 1 0 moves\n")
    assert cli.main(["lb", str(loads)]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split()[0] for row in rows] == list(STRATEGIES)


def edges_in(lines: list[str]) -> dict[tuple[int, int], tuple[int, int]]:
    """Messages and bytes by sender and receiver, from lines that begin with "edge"."""
    rows = [[int(word) for word in line.split()[1:]] for line in lines if line.startswith("edge ")]
    assert len({(row[0], row[1]) for row in rows}) == len(rows)
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}


def check_edges(edges: dict[tuple[int, int], tuple[int, int]]) -> None:
    assert set(edges) == {(0, 1), (0, 7), (1, 6), (2, 3), (4, 5)}
    assert edges[0, 1] == edges[0, 7]  # on one PE, and between PEs
    for ends, (messages, size_bytes) in {(0, 7): (3, 3000), (1, 6): (1, 100_000), (2, 3): (1, 0)}.items():
        assert edges[ends][0] == messages
        # With what tells the receiver the type and the size of an argument.
        assert size_bytes <= edges[ends][1] <= size_bytes + 100 * messages
    assert edges[4, 5][1] >= 8000


@pytest.mark.parametrize("num_pes", [1, 2, 4])
def test_a_strategy_that_reads_communication_gets_it(
    expect_success: Callable[..., str], num_pes: int
) -> None:
    lines = expect_success(num_pes, "communicating.py", environment={"WEFT_LB": "reads"}).splitlines()
    assert lines[-1] == "all checked"
    check_edges(edges_in(lines))


@pytest.mark.parametrize("strategy", ["ignores", "diffusion"])
def test_other_strategies_run_as_before(expect_success: Callable[..., str], strategy: str) -> None:
    ended = expect_success(2, "communicating.py", environment={"WEFT_LB": strategy})
    assert ended.splitlines() == ["all checked"]


def test_recorded_loads_have_the_communication(run_job: RunJob, tmp_path: Path) -> None:
    loads = tmp_path / "loads"
    ended = run_job(2, "communicating.py", environment={"WEFT_LB": "greedy", "WEFT_LB_RECORD": str(loads)})
    assert ended.returncode == 0, ended.stderr
    check_edges(edges_in(Path(f"{loads}.1").read_text().splitlines()))
    assert edges_in(Path(f"{loads}.2").read_text().splitlines()) == {}
