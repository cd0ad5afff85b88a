"""What survives many recoveries holds no more than after a few."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parent / "programs" / "again.py"
# A job that takes longer hangs.
HANG_S = 120
RECOVERIES, EVERY = 24, 8
# Room for what Python and UCX keep for reuse.
MOST_GROWTH_KIB = 4096


def test_nothing_grows_with_recoveries() -> None:
    command = [sys.executable, "-m", "weft", "run", "-n", "2", "--on-loss", "restart"]
    ended = subprocess.run(
        [*command, str(PROGRAM), str(RECOVERIES), str(EVERY)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert ended.returncode == 0, ended.stderr
    samples: list[dict[str, Any]] = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [sample["recoveries"] for sample in samples] == list(range(EVERY, RECOVERIES + 1, EVERY))
    first, last = samples[0], samples[-1]
    for process in ("launcher", "pe_0"):
        for what in ("threads", "descriptors", "mappings"):
            assert last[process][what] <= first[process][what], samples
        assert last[process]["rss_kib"] <= first[process]["rss_kib"] + MOST_GROWTH_KIB, samples
    assert last["shared_bytes"] <= first["shared_bytes"], samples
