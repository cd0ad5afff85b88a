#!/usr/bin/env python3
"""Counts the runs of each fault in the reports of tests/multihost/test_faults.py, as JSON on stdout.

Usage: tools/count_faults.py REPORT.xml [...]

The reports are those of `pytest -o junit_logging=system-out --junit-xml=REPORT.xml`. A case is a test with
its parameters but the seed. If a seed ran several times, every run counts.
"""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SEED = re.compile(r"\[(?:(.+)-)?(\d+)\]$")
ENDED = re.compile(r"the last PE ended after ([\d.]+) s")


def count(reports: Iterable[Path]) -> dict[str, Any]:
    cases: dict[str, dict[str, Any]] = {}
    for report in reports:
        for run in ElementTree.parse(report).iter("testcase"):
            name = run.get("name", "")
            if not (found := SEED.search(name)):
                continue  # a test without a seed
            parameters = f"[{found[1]}]" if found[1] else ""
            case = cases.setdefault(
                name[: found.start()] + parameters,
                {
                    "runs": 0,
                    "seeds": set(),
                    "failed": [],
                    "longest_until_the_last_pe_ended_s": None,
                    "longest_s": 0.0,
                },
            )
            case["runs"] += 1
            case["seeds"].add(int(found[2]))
            case["longest_s"] = max(case["longest_s"], float(run.get("time", "0")))
            if ended := ENDED.search(run.findtext("system-out") or ""):
                longest = case["longest_until_the_last_pe_ended_s"] or 0.0
                case["longest_until_the_last_pe_ended_s"] = max(longest, float(ended[1]))
            for what in ("failure", "error", "skipped"):
                for problem in run.iter(what):
                    message = problem.get("message", "").strip().splitlines()
                    case["failed"].append(
                        {
                            "seed": int(found[2]),
                            "what": what,
                            "message": message[0] if message else "",
                            "report": report.name,
                        }
                    )
    for case in cases.values():
        case["seeds"] = len(case["seeds"])
    return {name: cases[name] for name in sorted(cases)}


def main() -> int:
    reports = [Path(name) for name in sys.argv[1:]]
    if not reports:
        print(__doc__, file=sys.stderr)
        return 2
    print(json.dumps(count(reports), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
