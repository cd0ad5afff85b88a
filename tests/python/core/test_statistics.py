"""What `weft run --stats` says about the entry methods of Python chares."""

from __future__ import annotations

import re

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
