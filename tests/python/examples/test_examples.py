"""Every small example runs to its end, alone and on several PEs, and says what it should."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
MOST_LINES = 120
LANGUAGES = ("cpp", "python")
PES = (None, 1, 2, 4)


def test_an_example_shows_one_idea() -> None:
    lengths = {
        str(path.relative_to(EXAMPLES)): len(path.read_text(encoding="utf-8").splitlines())
        for path in EXAMPLES.glob("*/*")
        if path.is_file() and path.suffix in (".py", ".cpp", ".h")
    }
    assert len(lengths) > 20
    too_long = {name: length for name, length in lengths.items() if length > MOST_LINES}
    assert not too_long, f"more than {MOST_LINES} lines: move it to miniapps/, or show less in it"


def test_the_numbers_of_the_examples_have_no_gap() -> None:
    numbers = sorted(int(folder.name[:2]) for folder in EXAMPLES.iterdir() if (folder.name[:2]).isdigit())
    assert numbers == list(range(1, len(numbers) + 1))


def lines_of(done) -> list[str]:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_hello(run_example, language: str, num_pes: int | None) -> None:
    total = num_pes or 1
    lines = lines_of(run_example("hello", language, num_pes))
    expected = [f"hello from PE {pe} of {total}" for pe in range(total)]
    assert sorted(lines) == sorted([*expected, "all PEs have said hello"])


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_ring(run_example, language: str, num_pes: int | None) -> None:
    assert lines_of(run_example("ring", language, num_pes)) == [
        "the token ended at chare 0",
        "every chare knows the sum of squares: 140",
    ]


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_collectives(run_example, language: str, num_pes: int | None) -> None:
    first, second = lines_of(run_example("collectives", language, num_pes))
    assert first == "a rumour was heard 255 times, as it should be 255 times"
    number, rest = second.split(" ", 1)
    assert 1 <= int(number) <= 40
    assert rest == "of 40 heard it most often"


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_heat(run_example, language: str, num_pes: int | None) -> None:
    assert lines_of(run_example("heat", language, num_pes)) == [
        "the heat along the rod: 85.01 58.58 36.77 20.89 10.68 4.89 1.95 0.51"
    ]


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_values(run_example, language: str, num_pes: int | None) -> None:
    assert lines_of(run_example("values", language, num_pes)) == [
        "p3 is at 3, 1.5",
        "the particles lie between 0 and 3",
        "the call failed: no particle is called p0",
    ]


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_payloads(run_example, language: str, num_pes: int | None) -> None:
    assert lines_of(run_example("payloads", language, num_pes)) == [
        "half of them: 500",
        "block 0 got 2, block 1 got 1",
    ]


@pytest.mark.parametrize("num_pes", PES)
def test_pool(run_example, num_pes: int | None) -> None:
    assert lines_of(run_example("pool", "python", num_pes)) == [
        "6171 takes 261 steps, the most below 10000",
        "the first number of more than 100 steps takes 111",
        "the sum of the powers: 1023",
        "the integral from 0 to 1: 0.6667",
        "the map failed: ValueError: math domain error",
    ]


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_migration(run_example, language: str, num_pes: int | None) -> None:
    assert lines_of(run_example("migration", language, num_pes)) == [
        f"PE {pe} stores {pe} to {pe + 99999}" for pe in range(num_pes or 1)
    ]


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_sparse(run_example, language: str, num_pes: int | None) -> None:
    leaves = [(1, 0), (2, 2), (4, 12), *((5, position) for position in range(26, 32))]
    assert lines_of(run_example("sparse", language, num_pes)) == [
        *(f"leaves: {count}" for count in (1, 2, 3, 4, 6, 9)),
        *(f"level {level}, position {position}" for level, position in leaves),
        "together they have the length 1",
    ]


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_sections(run_example, language: str, num_pes: int | None) -> None:
    assert lines_of(run_example("sections", language, num_pes)) == [
        "row 1: 40 50 60 70",
        "column 3 from below: 15 11 70 3",
        "diagonal: 0 50 10 15",
        "sums of the rows: 6 220 38 54",
        "sum of a half of the diagonal: 50",
        "sum of a half of the diagonal: 25",
        "sum of the diagonal and the border: 81",
    ]


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_global_memory(run_example, language: str, num_pes: int | None) -> None:
    assert lines_of(run_example("global_memory", language, num_pes)) == [
        f"1000 samples in {4 * (num_pes or 1)} bins",
        "refused: byte 32 of segment 1 of PE 0 (host) does not have 8 bytes behind it: "
        "the segment has 32 bytes",
    ]


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_balance(run_example, language: str, num_pes: int | None) -> None:
    assert lines_of(run_example("balance", language, num_pes)) == [
        "32 blocks have finished",
        "32 of them are whole",
        "every PE has blocks: yes",
    ]


def test_balance_has_a_strategy_of_its_own(run_example, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_LB", "round_robin")
    assert "32 of them are whole" in lines_of(run_example("balance", "cpp", 2))


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_periodic(run_example, language: str, num_pes: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_LB_PERIOD", "0.005")
    lines = lines_of(run_example("periodic", language, num_pes))
    # How many workers move depends on the time that the machine takes.
    assert lines[0] == "16 workers have done 1600 items"
    assert len(lines) == 2 and lines[1].startswith("workers that have moved: ")


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_device_load(run_example, language: str, num_pes: int | None) -> None:
    assert lines_of(run_example("device_load", language, num_pes)) == [
        "4 blocks have been balanced",
        "the heavy ones are apart: yes",
    ]


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_conditions(run_example, language: str, num_pes: int | None) -> None:
    values = list(range(8))
    for _ in range(100):
        values = [(values[i - 1] + values[(i + 1) % 8]) % 1000 for i in range(8)]
    assert lines_of(run_example("conditions", language, num_pes)) == [
        f"after 100 iterations: {' '.join(map(str, values))}"
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_checkpoint(run_example, tmp_path: Path, language: str) -> None:
    folder = tmp_path / "results"
    whole = lines_of(run_example("checkpoint", language, 2, tmp_path / "other", 20))
    assert whole == ["the heat after 20 steps is 300"]
    assert lines_of(run_example("checkpoint", language, 2, folder, 12)) == ["the heat after 12 steps is 180"]
    for num_pes in (3, None):
        assert lines_of(run_example("checkpoint", language, num_pes, folder, 20))[1:] == whole


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_stream_signals(run_example, language: str, num_pes: int | None) -> None:
    total = num_pes or 1
    lines = lines_of(run_example("stream_signals", language, num_pes))
    expected = [f"rank {rank} has the number of rank {(rank - 5) % total}" for rank in range(total)]
    assert sorted(lines) == expected


@pytest.mark.parametrize("num_pes", PES)
def test_service(run_example, num_pes: int | None) -> None:
    assert lines_of(run_example("service", "python", num_pes)) == ['200 "7"', '404 "no key colour20"']


@pytest.mark.parametrize("num_pes", PES)
def test_kernel_flags(run_example, num_pes: int | None) -> None:
    total = num_pes or 1
    lines = lines_of(run_example("kernel_flags", "python", num_pes))
    expected = [f"rank {rank} has the number of rank {(rank - 5) % total}" for rank in range(total)]
    assert sorted(lines) == expected


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_teams(run_example, language: str, num_pes: int | None) -> None:
    total = num_pes or 1
    expected = [
        f"weft was inserted 2 times by each of {total} PEs",
        f"the ranks of the even team add up to {sum(range(0, total, 2))}",
    ]
    if total > 1:
        expected.append(f"the ranks of the odd team add up to {sum(range(1, total, 2))}")
    assert lines_of(run_example("teams", language, num_pes)) == expected


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_queens(run_example, language: str, num_pes: int | None) -> None:
    assert lines_of(run_example("queens", language, num_pes)) == ["8 queens have 92 solutions"]


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_molecules(run_example, language: str, num_pes: int | None) -> None:
    assert lines_of(run_example("molecules", language, num_pes)) == [
        "after 20 steps: momentum 0.0000, kinetic energy 0.0265"
    ]


def distances_from_the_first(vertices: int, edges: list[tuple[int, int]]) -> list[int]:
    """Of the vertices that can be reached from vertex 0, in a graph whose edges go both ways."""
    neighbours: list[list[int]] = [[] for _ in range(vertices)]
    for one, other in edges:
        neighbours[one].append(other)
        neighbours[other].append(one)
    distances = {0: 0}
    for vertex in (reached := [0]):
        for neighbour in neighbours[vertex]:
            if neighbour not in distances:
                distances[neighbour] = distances[vertex] + 1
                reached.append(neighbour)
    return list(distances.values())


@pytest.mark.parametrize("num_pes", PES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_graph_search(run_example, language: str, num_pes: int | None) -> None:
    edges = []
    for number in range(10_000):
        state = (number * 6364136223846793005 + 1442695040888963407) % 2**64
        state = (state ^ state >> 32) * 6364136223846793005 % 2**64
        edges.append((state // 2**32 % 5000, state % 2**32 % 5000))
    found = distances_from_the_first(5000, edges)
    assert len(found) > 4000
    assert lines_of(run_example("graph_search", language, num_pes)) == [
        f"{len(found)} of 5000 vertices are reached, over {max(found)} edges at most, {sum(found)} in all"
    ]
