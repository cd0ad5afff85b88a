"""What survives many recoveries holds no more than after a few."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parent / "programs" / "again.py"
# A job that takes longer hangs.
HANG_S = 150
# The least after the last of them is compared with the most after the first ones: a sample may hold what is
# about to be released, such as the descriptor of a process that has just ended.
RECOVERIES, FIRST, LAST = 24, 8, 8
# Room for what Python and UCX keep for reuse.
MOST_GROWTH_KIB = 4096


def test_nothing_grows_with_recoveries() -> None:
    command = [sys.executable, "-m", "weft", "run", "-n", "2", "--on-loss", "restart"]
    ended = subprocess.run(
        [*command, str(PROGRAM), str(RECOVERIES)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert ended.returncode == 0, ended.stderr
    samples: list[dict[str, Any]] = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [sample["recoveries"] for sample in samples] == list(range(1, RECOVERIES + 1))
    first, last = samples[:FIRST], samples[-LAST:]
    for process in ("launcher", "pe_0"):
        for what in ("threads", "descriptors", "mappings", "rss_kib"):
            most = max(sample[process][what] for sample in first)
            least = min(sample[process][what] for sample in last)
            assert least <= most + (MOST_GROWTH_KIB if what == "rss_kib" else 0), samples
    most_shared = max(sample["shared_bytes"] for sample in first)
    assert min(sample["shared_bytes"] for sample in last) <= most_shared, samples
