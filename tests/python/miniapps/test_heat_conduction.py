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

    from heat_conduction import TOLERANCE, temperatures

    one, next_ = (temperatures(16, 0, 16, steps) for steps in (40, 41))
    assert np.abs(one - next_).max() > 1e6 * TOLERANCE
    assert np.abs(temperatures(16, 3, 7, 40) - one[3:7]).max() == 0.0
