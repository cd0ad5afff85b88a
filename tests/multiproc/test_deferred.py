"""Messages that a poster defers, between processes: placed, refused, left behind, and of a dead sender."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.mark.parametrize("path", ["auto", "tagged", "active"])
def test_each_is_fetched_once_or_refused(build_folder: Path, run, path: str) -> None:
    program = build_folder / "tests" / "multiproc" / "deferred_probe"
    outcome = run("-n", 2, program, env={**os.environ, "WEFT_MESSAGING_PATH": path})
    assert outcome.stderr == ""
    assert outcome.exit_code == 0


@pytest.mark.parametrize("path", ["tagged", "active"])
def test_a_sender_that_dies_ends_the_job(build_folder: Path, run, path: str) -> None:
    program = build_folder / "tests" / "multiproc" / "deferred_probe"
    outcome = run("-n", 2, program, "die", env={**os.environ, "WEFT_MESSAGING_PATH": path})
    assert outcome.exit_code == 7
    assert "PE 0" in outcome.stderr
