"""What `weft run --stats` says about the entry methods of Python chares."""

from __future__ import annotations

import re

import pytest

from .conftest import RunJob

RUNS = {
    "Worker.quick": 3,
    "Worker.fail": 1,
    "Worker.fail_later": 1,
    "Worker.wait": 1,
    "Worker.open": 1,
    "Worker.contribute_one": 1,
}


def test_entry_methods_are_counted_by_name(run_job: RunJob) -> None:
    ended = run_job(2, "entry_statistics.py", environment={"WEFT_STATS": "1"})
    assert ended.returncode == 0, ended.stderr
    for pe in range(2):
        expected = RUNS | ({"Worker.summed": 1} if pe == 0 else {})
        found = re.findall(rf"^weft: PE {pe}: (Worker\.\w+) +(\d+) +\d+\.\d+$", ended.stderr, re.MULTILINE)
        assert {name: int(runs) for name, runs in found} == expected, ended.stderr
        total = sum(expected.values())
        line = rf"^weft: PE {pe}: ran {total} entry methods; busy \d+\.\d+ s, idle \d+\.\d+ s$"
        assert re.search(line, ended.stderr, re.MULTILINE), ended.stderr


def test_nothing_is_counted_unless_asked(run_job: RunJob) -> None:
    ended = run_job(2, "entry_statistics.py")
    assert ended.returncode == 0
    assert ended.stderr == ""


@pytest.mark.parametrize("num_pes", [1, 2])
def test_check_names_methods_that_keep_their_pe_busy(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "long_methods.py", environment={"WEFT_CHECK": "1"})
    assert ended.returncode == 0, ended.stderr
    for pe in range(num_pes):
        # A PE that waits for its core has run for long as well.
        for method, times in (("computes", "1 time"), ("computes_behind_a_wait", "[23] times")):
            begins = rf"^weft: PE {pe}: Slow.{method} has run for 100 ms or more without a wait"
            line = rf"{begins}, {times}, the longest \d+\.\d"
            assert re.search(line, ended.stderr, re.MULTILINE), ended.stderr
