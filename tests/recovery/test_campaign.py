"""A few jobs of the campaign that kills PEs at random times, and its own rules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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
