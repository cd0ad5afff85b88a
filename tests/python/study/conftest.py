"""What the tests of the study harness share: a study of programs that only print times."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from weft_bench.programs import Programs
from weft_bench.provenance import Provenance
from weft_bench.study.plan import Group, Study, Variant
from weft_bench.study.trials import Header, TrialFile

WHERE = Provenance(git="0123", host="a machine, 2 cores", date="2026-01-02T03:04:05Z")

# Prints the time that its argument says; "wrong", "silent" and "broken" are programs that go wrong.
FAKE = """\
import json, sys
what = sys.argv[1]
print("a banner")
if what == "broken":
    sys.exit("it broke")
if what != "silent":
    value = 1.0 if what == "wrong" else float(what)
    print(json.dumps({"metric": "time_s", "value": value, "verified": what != "wrong", "odf": 3}))
print("{not json")
"""


class Direct(Variant):
    """A variant that is started without a launcher."""

    def absent(self, programs: Programs) -> str | None:
        return "install it" if self.system == "missing" else None

    def command(self, pes: int, programs: Programs) -> list[str]:
        return [sys.executable, str(programs.need(self.program)), *self.options]


def _make_study(**changes) -> Study:
    variants = (
        Direct("mpi4py", "mpi4py", "fake.py", ("2.0",)),
        Direct("Weft, ODF 1", "weft", "fake.py", ("2.5",)),
        Direct("Weft, ODF 8, LB", "weft", "fake.py", ("1.0",)),
    )
    groups = (
        Group("strong, 1 PE", 1, variants, "strong", 1),
        Group("strong, 2 PEs", 2, variants, "strong", 1),
    )
    return dataclasses.replace(Study("fake", groups, trials=5, warmup=1), **changes)


@pytest.fixture(scope="session")
def make_study():
    """Makes a study of two groups of three variants, with changes."""
    return _make_study


@pytest.fixture(scope="session")
def direct():
    """The class of variants that need no launcher."""
    return Direct


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    """Where fake.py is."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "fake.py").write_text(FAKE, encoding="utf-8")
    return Programs(folder)


@pytest.fixture
def open_file(tmp_path: Path):
    """Opens the trials of a study; "seed" is given, or drawn as 7."""

    def open_(study: Study, seed: int | None = None, where: Provenance = WHERE) -> TrialFile:
        header = Header(study.settings(), 7 if seed is None else seed, where)
        return TrialFile(tmp_path / "trials.jsonl", header, seed_is_given=seed is not None)

    return open_
