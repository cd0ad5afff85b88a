"""Payloads between processes: every size, to and fro, on both wire paths, in host and device memory."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize("path", ["auto", "tagged", "active"])
@pytest.mark.parametrize("kind", ["host", "emulated"])
def test_every_size_arrives_whole(build_folder: Path, run, kind: str, path: str, num_pes: int) -> None:
    program = build_folder / "tests" / "multiproc" / "payload_probe"
    outcome = run("-n", num_pes, program, kind, env={**os.environ, "WEFT_MESSAGING_PATH": path})
    assert outcome.stderr == ""
    assert outcome.exit_code == 0


def test_statistics_count_the_entry_methods_of_each_pe(build_folder: Path, run) -> None:
    program = build_folder / "tests" / "multiproc" / "payload_probe"
    outcome = run("-n", 2, "--stats", program, "host")
    assert outcome.exit_code == 0
    each_way = 2 * 7 * 2  # to one chare and to all; sizes; senders
    expected = {"send_all": 1, "anywhere": each_way, "posted": each_way, "num_posted": 1}
    for pe in range(2):
        found = re.findall(rf"^weft: PE {pe}: .*Probe::(\w+) +(\d+) +\d+\.\d+$", outcome.stderr, re.MULTILINE)
        assert {name: int(runs) for name, runs in found} == expected, outcome.stderr
        line = (
            rf"^weft: PE {pe}: ran {sum(expected.values())} entry methods; busy \d+\.\d+ s, idle \d+\.\d+ s$"
        )
        assert re.search(line, outcome.stderr, re.MULTILINE), outcome.stderr


def test_a_path_that_does_not_exist_is_refused(build_folder: Path, run) -> None:
    program = build_folder / "tests" / "multiproc" / "payload_probe"
    outcome = run("-n", 1, program, "host", env={**os.environ, "WEFT_MESSAGING_PATH": "both"})
    assert outcome.exit_code == 1
    assert "WEFT_MESSAGING_PATH is 'both': give auto, tagged or active" in outcome.stderr
