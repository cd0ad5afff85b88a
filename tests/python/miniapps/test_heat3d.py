"""Heat conduction in 3D: both exchanges come to the serial solution's bits however the body is cut."""

from __future__ import annotations

import json

import pytest

from weft_bench.gpus import gpu_names

EXCHANGES = ("channel", "pgas")
EQUAL = "values equal those of the serial reference to the last bit"
CONSERVED = ": conserved"

# PEs, ODF, size: one block; a block per PE; many; sizes that do not divide; one point per block; flat, long.
CASES = [
    (1, 1, "16"),
    (2, 1, "16"),
    (1, 4, "12 10 8"),
    (2, 4, "17 13 11"),
    (4, 2, "16 16 16"),
    (4, 5, "7 11 5"),
    (3, 9, "3 3 3"),
    (2, 3, "1 1 29"),
    (2, 4, "2 40 3"),
]


def arguments(exchange: str, odf: int, size: str, *more: object) -> list[object]:
    steps = ["--steps", 30, "--warmup", 3]
    return ["--exchange", exchange, "--size", *size.split(), "--odf", odf, *steps, "--verify", *more]


def expect_right(done) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert done.stdout.count(EQUAL) == 1
    assert done.stdout.count(CONSERVED) == 1


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize(("num_pes", "odf", "size"), CASES)
def test_is_right(run_example, exchange: str, num_pes: int, odf: int, size: str) -> None:
    expect_right(run_example("heat3d", "cpp", num_pes, *arguments(exchange, odf, size)))


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize(("num_pes", "odf", "size"), [CASES[0], CASES[3], CASES[6], CASES[8]])
def test_is_right_in_emulated_memory(run_example, exchange: str, num_pes: int, odf: int, size: str) -> None:
    more = ("--memory", "emulated")
    expect_right(run_example("heat3d", "cpp", num_pes, *arguments(exchange, odf, size, *more)))


@pytest.mark.parametrize("memory", ["host", "emulated"])
def test_one_sided_is_right_without_mapped_segments(run_example, monkeypatch, memory: str) -> None:
    monkeypatch.setenv("WEFT_PGAS_MAPPING", "off")
    more = ("--memory", memory)
    expect_right(run_example("heat3d", "cpp", 2, *arguments("pgas", 3, "17 13 11", *more)))


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_large_faces(run_example, exchange: str) -> None:
    words = ["--exchange", exchange, "--size", 2, 800, 800, "--steps", 4, "--warmup", 1, "--verify"]
    expect_right(run_example("heat3d", "cpp", 2, *words))


@pytest.mark.gpu
@pytest.mark.parametrize("gpus", ["0", "0,1"])
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_is_right_in_gpu_memory(run_example, need_gpus, monkeypatch, exchange: str, gpus: str) -> None:
    need_gpus(len(gpus.split(",")))
    monkeypatch.setenv("WEFT_GPUS", gpus)
    done = run_example("heat3d", "cpp", 2, *arguments(exchange, 2, "17 70 131", "--memory", "cuda"))
    if "built without a CUDA compiler" in done.stderr:
        pytest.skip(done.stderr.strip())
    expect_right(done)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_the_file_has_the_windows_of_each_pe(run_example, tmp_path, exchange: str) -> None:
    file = tmp_path / "times.json"
    done = run_example("heat3d", "cpp", 2, *arguments(exchange, 2, "8", "--pin", "--json", file))
    expect_right(done)
    times = json.loads(file.read_text())
    assert (times["program"], times["exchange"], times["memory"]) == ("heat3d", exchange, "host")
    assert (times["pes"], times["odf"], times["points"]) == (2, 2, [8, 8, 8])
    assert (times["steps"], times["warmup"]) == (30, 3)
    assert [len(pe) for pe in times["two_steps_us"]] == [28, 28]
    assert all(window > 0 for pe in times["two_steps_us"] for window in pe)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--size", 2, "--odf", 9], "cannot be cut into 18 blocks"),
        (["--exchange", "two"], "--exchange must be one of channel, pgas, not 'two'"),
        (["--steps", 2], "--steps must be a whole number of at least 3"),
        (["--json", "no/such/folder/f.json", "--size", 4], "cannot write no/such/folder/f.json"),
        (["--odd"], "there is no option '--odd'"),
    ],
)
def test_mistakes_are_one_sentence(run_example, words: list[object], part: str) -> None:
    done = run_example("heat3d", "cpp", 2, *words)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("heat3d: ")
    assert part in line
    assert line.endswith("(see heat3d --help)")


def test_a_machine_without_a_gpu_is_told_in_a_sentence(run_example) -> None:
    if (names := gpu_names()) != ():
        pytest.skip(f"this machine has a GPU ({names[0]})")
    done = run_example("heat3d", "cpp", 2, "--memory", "cuda")
    assert done.returncode == 2
    assert done.stderr.startswith("heat3d: --memory cuda: ")


def test_help_says_what_is_timed(run_example) -> None:
    done = run_example("heat3d", "cpp", 2, "--help")
    assert done.returncode == 0
    assert "What is timed." in done.stdout
