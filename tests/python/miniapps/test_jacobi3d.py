"""Jacobi3D in both languages: right to the last bit however it is cut, and clear about mistakes."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from weft_bench.gpus import gpu_names
from weft_bench.record import read_records

LANGUAGES = ("cpp", "python")
# Those whose faces the streams of devices exchange.
QUEUED_MODELS = ("queued", "graph")
# A job that takes longer hangs.
HANG_S = 150
VERIFIED = "values equal those of the serial reference to the last bit"


def checksums(output: str) -> set[str]:
    return set(re.findall(r" ([0-9a-f]{16})$", output, flags=re.MULTILINE))


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


@pytest.mark.parametrize(("num_pes", "odf", "size"), CASES)
def test_is_right_and_the_same_in_both_languages(run_example, num_pes: int, odf: int, size: str) -> None:
    found = set()
    for language in LANGUAGES:
        arguments = ["--size", *size.split(), "--odf", odf, "--iterations", 12, "--warmup", 3, "--verify"]
        if language == "python":
            arguments += ["--kernel", "numpy"]
        done = run_example("jacobi3d", language, num_pes, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        assert done.stdout.count(VERIFIED) == 2
        found |= checksums(done.stdout)
    assert len(found) == 1, "messaging and channel, C++ and Python come to the same bits"


# Faces of device memory: language, model, --staging.
DEVICE_WAYS = [
    (language, model, staging)
    for language in LANGUAGES
    for model in ("channel", "messaging")
    for staging in ("device", "host")
] + [(language, model, "device") for language in LANGUAGES for model in QUEUED_MODELS]


@pytest.mark.parametrize(("num_pes", "odf", "size"), [CASES[0], CASES[3], CASES[6], CASES[8]])
def test_device_memory_gives_the_same_values(run_example, num_pes: int, odf: int, size: str) -> None:
    found = set()
    for language, model, staging in [("cpp", "channel", None), *DEVICE_WAYS]:
        arguments = ["--size", *size.split(), "--odf", odf, "--iterations", 7, "--warmup", 2, "--verify"]
        arguments += ["--model", model]
        if language == "python":
            arguments += ["--kernel", "numpy"]
        if staging is not None:
            arguments += ["--memory", "emulated", "--staging", staging]
        done = run_example("jacobi3d", language, num_pes, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        assert done.stdout.count(VERIFIED) == 1
        found |= checksums(done.stdout)
    assert len(found) == 1


# More iterations than are queued at once, and an odd number before them.
@pytest.mark.parametrize("odf", [1, 2, 4, 8])
@pytest.mark.parametrize(("num_pes", "size"), [(1, "9 10 11"), (2, "8 3 24"), (3, "25 7 2")])
def test_streams_exchange_faces(run_example, num_pes: int, odf: int, size: str) -> None:
    arguments = ["--size", *size.split(), "--odf", odf, "--iterations", 34, "--warmup", 3, "--verify"]
    found = set()
    for language in LANGUAGES:
        for model in QUEUED_MODELS:
            done = run_example(
                "jacobi3d", language, num_pes, *arguments, "--memory", "emulated", "--model", model
            )
            assert done.returncode == 0, done.stdout + done.stderr
            assert done.stderr == ""
            assert done.stdout.count(VERIFIED) == 1
            found |= checksums(done.stdout)
    assert len(found) == 1


# Faces of many pages, and sent in pieces where they are staged.
@pytest.mark.parametrize(("language", "model", "staging"), DEVICE_WAYS)
def test_large_faces_of_device_memory(run_example, language: str, model: str, staging: str) -> None:
    done = run_example(
        "jacobi3d",
        language,
        2,
        *["--size", 4, 400, 400, "--odf", 1, "--iterations", 4, "--warmup", 1, "--verify"],
        *["--memory", "emulated", "--model", model, "--staging", staging],
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(VERIFIED) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("gpus", ["0", "0,1"])
@pytest.mark.parametrize(("language", "model", "staging"), DEVICE_WAYS)
def test_gpu_memory_gives_the_same_values(
    run_example, need_gpus, monkeypatch, language: str, model: str, staging: str, gpus: str
) -> None:
    need_gpus(len(gpus.split(",")))
    if language == "python":
        pytest.importorskip("cupy", reason="its kernels need CuPy")
    monkeypatch.setenv("WEFT_GPUS", gpus)
    arguments = ["--size", 17, 70, 131, "--odf", 2, "--iterations", 7, "--warmup", 2, "--verify"]
    done = run_example(
        "jacobi3d", language, 2, *arguments, "--memory", "cuda", "--model", model, "--staging", staging
    )
    if "built without a CUDA compiler" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(VERIFIED) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_machine_without_a_gpu_is_told_in_a_sentence(run_example, language: str) -> None:
    if (names := gpu_names()) != ():
        pytest.skip(f"this machine has a GPU ({names[0]})")
    done = run_example("jacobi3d", language, 2, "--memory", "cuda")
    assert done.returncode == 2
    assert re.match(r"jacobi3d(\.py)?: --memory cuda(:| needs) ", done.stderr)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_runs_without_a_launcher(run_example, language: str) -> None:
    done = run_example("jacobi3d", language, None, "--size", 8, "--iterations", 5, "--verify")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(VERIFIED) == 2


# Faces that are too large for an eager send or a copy at the send.
@pytest.mark.parametrize("language", LANGUAGES)
def test_large_faces(run_example, language: str) -> None:
    done = run_example(
        "jacobi3d",
        language,
        2,
        "--size",
        4,
        200,
        200,
        "--odf",
        1,
        "--iterations",
        4,
        "--warmup",
        1,
        "--verify",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(VERIFIED) == 2


def test_kernels_agree(run_example) -> None:
    pytest.importorskip("numba")
    outputs = [
        run_example("jacobi3d", "python", 2, "--size", 9, 8, 7, "--iterations", 10, "--kernel", kernel).stdout
        for kernel in ("numpy", "numba")
    ]
    assert len(checksums(outputs[0]) | checksums(outputs[1])) == 1


@pytest.mark.parametrize("model", ["messaging", "channel"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_records(run_example, tmp_path: Path, language: str, model: str) -> None:
    file = tmp_path / "times.json"
    arguments = ["--size", 8, 9, 10, "--odf", 2, "--iterations", 6, "--warmup", 2, "--model", model]
    done = run_example("jacobi3d", language, 2, *arguments, "--no-checksum", "--json", file)
    assert done.returncode == 0, done.stderr
    assert not checksums(done.stdout)
    records = list(read_records(file))
    assert [record.path.split(",")[0] for record in records] == [
        "overall",
        "compute",
        "pack",
        "communication",
    ]
    for record in records:
        assert (record.bench, record.system, record.memory) == ("jacobi3d", "weft", "host")
        assert (record.language, record.model, record.metric) == (language, model, "time_s")
        assert (record.pes, record.size_bytes, record.warmup) == (2, 8 * 8 * 9 * 10, 2)
        assert record.path.endswith(", direct, 8x9x10 points, ODF 2, 6 iterations")
    overall, *parts = (record.median for record in records)
    assert all(part >= 0 for part in parts)
    assert sum(parts) == pytest.approx(overall)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--odf", 0], "--odf: must be a whole number of at least 1, not '0'"),
        (["--size", 8, 8], "--size takes one number, or three: X Y Z"),
        (["--size", "large"], "--size: must be a whole number of at least 1, not 'large'"),
        (["--warmup", -1], "--warmup"),
        (["--model", "mpi"], "--model"),
        (["--memory", "core"], "--memory"),
        (["--memory", "emulated", "--staging", "none"], "--staging"),
        (["--staging", "host"], "--staging is about device memory"),
        (["--model", "queued"], "--model queued needs streams of a device"),
        (
            ["--model", "graph", "--memory", "emulated", "--staging", "host"],
            "--model graph needs streams of a device",
        ),
        (
            ["--model", "queued", "--memory", "cuda", "--odf", 25],
            "with CUDA_DEVICE_MAX_CONNECTIONS=32 the streams of at most 24 blocks of a PE",
        ),
        (["--fast"], "--fast"),
        (["--size", 2, "--odf", 9], "a grid of 2 x 2 x 2 points cannot be cut into 18 blocks"),
        (
            ["--size", 4, "--iterations", 1, "--json", "/dev/null/x"],
            "cannot write /dev/null/x",
        ),
    ],
)
def test_mistakes_are_one_sentence(run_example, language: str, arguments: list[object], part: str) -> None:
    done = run_example("jacobi3d", language, 2, *arguments)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("jacobi3d")
    assert part.replace(": must", " must") in lines[0].replace(": must", " must")
    assert lines[0].endswith("--help)")


def test_only_blocks_with_channels_are_protected(run_example) -> None:
    done = run_example("jacobi3d", "python", 2, "--protect-every", 3)
    assert done.returncode == 2
    assert "--protect-every needs --model channel" in done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_help_says_what_is_timed(run_example, language: str) -> None:
    done = run_example("jacobi3d", language, 2, "--help")
    assert done.returncode == 0
    assert done.stdout.count("What is timed.") == 1
    for option in ("--size", "--odf", "--iterations", "--warmup", "--model", "--verify", "--json"):
        assert option in done.stdout
    assert "--memory" in done.stdout
    assert "--staging" in done.stdout


def test_time_is_counted_once(import_miniapp) -> None:
    pytest.importorskip("weft._core", reason="kernels.py is a part of a Weft program")
    import_miniapp("jacobi3d")
    from kernels import COMPUTE, PACK, Interval, covered

    assert covered([]) == {COMPUTE: 0.0, PACK: 0.0}
    # Two blocks update at once; packing counts while no block updates.
    spans = [(PACK, 9, 10), (COMPUTE, 2, 5), (COMPUTE, 1, 3), (PACK, 4, 7), (PACK, 4.5, 6)]
    assert covered([Interval(*span) for span in spans]) == {COMPUTE: 4.0, PACK: 3.0}


class TestVerification:
    """That verification can fail."""

    @pytest.fixture(autouse=True)
    def modules(self, import_miniapp) -> None:
        import_miniapp("jacobi3d")

    def test_every_kind_of_difference_is_found(self) -> None:
        import numpy as np

        from verification import compare, solve_serially

        expected = solve_serially((3, 4, 5), 3)
        assert compare(expected.copy(), expected).equal

        result = expected.copy()
        result[0, 3, 2] = np.nextafter(result[0, 3, 2], 2.0)
        comparison = compare(result, expected)
        assert (comparison.num_different, comparison.first) == (1, (0, 3, 2))
        assert comparison.largest_difference > 0

        result[2, 0, 2] = np.nan
        assert "2 of 60 values differ" in str(compare(result, expected))
        assert compare(result, expected).largest_difference == np.inf
        assert not compare(np.array([[[-0.0]]]), np.array([[[0.0]]])).equal

    def test_neighbouring_iterations_differ(self) -> None:
        from verification import compare, solve_serially

        assert compare(solve_serially((6, 6, 6), 4), solve_serially((6, 6, 6), 5)).num_different > 200

    def test_decomposition(self) -> None:
        from decomposition import Problem, UserError, divide, range_of

        assert divide((96, 96, 96), 8) == (2, 2, 2)
        assert divide((100, 10, 10), 4) == (4, 1, 1)
        assert divide((96, 96, 96), 2) == (2, 1, 1)
        with pytest.raises(UserError, match="cannot be cut into 16 blocks"):
            divide((2, 2, 2), 16)
        problem = Problem((7, 11, 5), (3, 4, 5))
        assert [range_of(problem, (i, 0, 0)).size[0] for i in range(3)] == [2, 2, 3]


@pytest.mark.parametrize("language", LANGUAGES)
def test_progress_is_shown_on_a_terminal_only(program, language: str) -> None:
    leader, follower = os.openpty()
    argv = [sys.executable, "-m", "weft", "run", "-n", "2", str(program("jacobi3d", language))]
    with subprocess.Popen(
        [*argv, "--size", "8", "--iterations", "20"],
        stdout=subprocess.PIPE,
        stderr=follower,
        env={**os.environ, "TERM": "xterm"},  # a dumb one gets no progress display
    ) as job:
        os.close(follower)
        shown = b""
        # The last one to close its end of a terminal makes reads fail.
        with contextlib.suppress(OSError):
            while piece := os.read(leader, 4096):
                shown += piece
        output = job.communicate(timeout=HANG_S)[0]
    os.close(leader)
    assert job.returncode == 0
    assert b"messaging" in shown
    assert b"channel" in shown
    assert b"\x1b" not in output
