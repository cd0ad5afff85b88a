"""A few jobs of the campaign that kills PEs at random times, and its own rules."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "recovery_campaign.py"


def test_random_programs_survive_losses_at_random_times(tmp_path: Path) -> None:
    """The second job is resized as well."""
    record = tmp_path / "campaign.json"
    words = ["--jobs", "2", "--kills", "1000", "--kills-per-job", "10", "--seed", "1", "--pes", "2-4"]
    ended = subprocess.run(
        [sys.executable, str(TOOL), *words, "--json", str(record)], capture_output=True, text=True
    )
    campaign, *jobs = map(json.loads, record.read_text().splitlines())
    assert campaign["jobs"] == len(jobs) == 2
    assert campaign["kills"] == sum(len(job["kills"]) for job in jobs) > 0
    assert campaign["resizes"] == jobs[1]["resizes"] > 0
    assert set(campaign["ends"]) <= {"right", "words"}, ended.stdout
    assert ended.returncode == 0


def test_a_pe_that_leaves_is_none_of_those_that_a_job_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOL.parent))
    campaign = importlib.import_module("recovery_campaign")
    # PE 2 has been killed, and PE 3 leaves.
    seen = [{0: 10, 1: 11, 3: 13}, {0: 10, 1: 11, 2: 14}]

    class Job(campaign.MixedJob):
        is_running, num_pes, incarnation, recoveries, resizes, refusals = True, 3, 2, 1, 1, 0

        def __init__(self) -> None:
            """Starts nothing."""

        def pes(self) -> dict[int, int]:
            return seen.pop(0)

    assert Job().wait_for_progress({12}, 1)
    assert seen == []
