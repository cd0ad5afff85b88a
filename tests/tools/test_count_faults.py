"""tools/count_faults.py counts runs, seeds and failures of each case."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "count_faults.py"

REPORT = """<testsuites><testsuite>
<testcase name="test_cut[load-{first}]" time="9.5"><system-out>seed 3
the last PE ended after 8.25 s
</system-out></testcase>
<testcase name="test_cut[load-4]" time="20.0">
<failure message="TimeoutError: it hangs&#10;more">...</failure></testcase>
<testcase name="test_launcher[4]" time="1.0"><skipped message="no cluster"/></testcase>
<testcase name="test_without_a_seed" time="1.0"/>
</testsuite></testsuites>"""


def test_runs_of_several_reports(tmp_path: Path) -> None:
    reports = [tmp_path / "one.xml", tmp_path / "two.xml"]
    for report, first in zip(reports, (3, 5), strict=True):
        report.write_text(REPORT.format(first=first), encoding="utf-8")
    done = subprocess.run([sys.executable, TOOL, *reports], capture_output=True, text=True, check=True)
    counted = json.loads(done.stdout)
    assert list(counted) == ["test_cut[load]", "test_launcher"]
    cut = counted["test_cut[load]"]
    assert (cut["runs"], cut["seeds"]) == (4, 3)
    assert (cut["longest_until_the_last_pe_ended_s"], cut["longest_s"]) == (8.25, 20.0)
    assert cut["failed"] == [
        {"seed": 4, "what": "failure", "message": "TimeoutError: it hangs", "report": name}
        for name in ("one.xml", "two.xml")
    ]
    assert [problem["what"] for problem in counted["test_launcher"]["failed"]] == ["skipped", "skipped"]
