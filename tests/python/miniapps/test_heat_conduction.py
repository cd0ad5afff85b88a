"""Heat conduction in both languages: right against the exact result, the same steps, clear about mistakes."""

from __future__ import annotations

import json

import pytest

LANGUAGES = ("cpp", "python")


@pytest.mark.parametrize(
    ("num_pes", "odf", "size", "check_every"),
    [(None, 1, 16, 20), (1, 3, 17, 7), (2, 4, 19, 1), (4, 4, 16, 10), (2, 1, 600, 4)],
)
def test_is_right_and_takes_as_many_steps_in_both_languages(
    run_example, num_pes: int | None, odf: int, size: int, check_every: int
) -> None:
    steps = set()
    for language in LANGUAGES:
        until = 0.5 if size < 100 else 1.2  # of a large plate the first steps
        arguments = ["--size", size, "--odf", odf, "--check-every", check_every, "--until", until, "--verify"]
        done = run_example("heat_conduction", language, num_pes, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        fields = json.loads(done.stdout.splitlines()[-1])
        assert fields["metric"] == "time_s" and fields["value"] > 0
        assert fields["verified"] is True
        steps.add(fields["steps"])
    assert len(steps) == 1
    assert steps.pop() % check_every == 0


def checksum(done) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert json.loads(done.stdout.splitlines()[-1])["verified"] is True
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("checksum "))
    return line


# An odd number of steps between two checks: some of them are queued beside the graph.
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("num_pes", "odf", "check_every"), [(1, 3, 7), (2, 1, 20), (2, 4, 5)])
def test_streams_that_exchange_rows_come_to_the_same_bits(
    run_example, language: str, num_pes: int, odf: int, check_every: int
) -> None:
    arguments = ["--size", 19, "--odf", odf, "--check-every", check_every, "--verify", "--checksum"]
    expected = checksum(run_example("heat_conduction", language, num_pes, *arguments))
    for model in ("queued", "graph"):
        done = run_example(
            "heat_conduction", language, num_pes, *arguments, "--memory", "emulated", "--model", model
        )
        assert checksum(done) == expected, model


def test_rows_in_device_memory_over_channels(run_example) -> None:
    arguments = ["--size", 19, "--odf", 2, "--verify", "--checksum"]
    expected = checksum(run_example("heat_conduction", "python", 2, *arguments))
    done = run_example("heat_conduction", "python", 2, *arguments, "--memory", "emulated")
    assert checksum(done) == expected


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--size", 0], "--size"),
        (["--size", "1x"], "must be a whole number of at least 1, not '1x'"),
        (["--until", 0], "--until must be above 0 and below 10"),
        (["--until", "nan"], "--until must be "),
        (["--size", 3], "use a larger --size"),
        (["--odd", 3], "--odd"),
        (["--odf"], "--odf"),
        (["--model", "queued"], "--model queued needs streams of a device"),
        (["--model", "odd", "--memory", "emulated"], "--model"),
        (
            ["--model", "graph", "--memory", "cuda", "--odf", 25],
            "--model graph with --odf 25: with CUDA_DEVICE_MAX_CONNECTIONS=32",
        ),
    ],
)
def test_mistakes_are_one_sentence(run_example, language: str, arguments: list[object], part: str) -> None:
    done = run_example("heat_conduction", language, 2, *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("heat_conduction")
    assert part in line
    assert line.endswith("--help)")


@pytest.mark.parametrize("language", LANGUAGES)
def test_help_says_what_is_timed(run_example, language: str) -> None:
    done = run_example("heat_conduction", language, 2, "--help")
    assert done.returncode == 0
    assert "What is timed." in done.stdout


def test_verification_can_fail(import_miniapp) -> None:
    pytest.importorskip("weft._core", reason="NOT TESTED: it is a part of a Weft program")
    import_miniapp("heat_conduction")
    import numpy as np

    from plate import TOLERANCE, temperatures

    one, next_ = (temperatures(16, 0, 16, steps) for steps in (40, 41))
    assert np.abs(one - next_).max() > 1e6 * TOLERANCE
    assert np.abs(temperatures(16, 3, 7, 40) - one[3:7]).max() == 0.0
