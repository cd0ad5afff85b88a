"""The PGAS model between processes: calls, teams, collectives, barriers that block, the end of a job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def probe(build_folder: Path) -> Path:
    return build_folder / "tests" / "multiproc" / "teams_probe"


@pytest.mark.parametrize("pes", [1, 2, 3, 4])
def test_calls_teams_and_collectives(probe: Path, run, pes: int) -> None:
    outcome = run("-n", pes, probe)
    assert outcome.stderr == ""
    assert outcome.exit_code == 0


@pytest.mark.parametrize("settings", [{"WEFT_STAGING": "host"}, {"WEFT_PEER_MEMORY": "off"}], ids=str)
def test_other_ways_of_device_memory(probe: Path, run, settings: dict[str, str]) -> None:
    outcome = run("-n", 3, probe, env={**os.environ, **settings})
    assert outcome.stderr == ""
    assert outcome.exit_code == 0


def test_an_exception_without_a_caller_ends_the_job(probe: Path, run) -> None:
    outcome = run("-n", 2, probe, "throw")
    assert outcome.exit_code == 1
    assert "PE 1: an exception without an awaiting caller left" in outcome.stderr
    assert "the value is 8" in outcome.stderr


def test_a_pe_that_dies_ends_a_blocking_barrier(probe: Path, run) -> None:
    outcome = run("-n", 3, probe, "die")
    assert outcome.exit_code == 7
    assert "PE 1" in outcome.stderr


def test_the_end_of_the_job_ends_a_blocking_barrier(probe: Path, run) -> None:
    outcome = run("-n", 3, probe, "exit")
    assert outcome.stderr == ""
    assert outcome.exit_code == 3
