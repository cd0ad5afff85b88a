"""What the tests of the harness share."""

import os
import signal
from pathlib import Path

import pytest

from weft_bench import running
from weft_bench.record import Record
from weft_bench.system import Reading, Series


class Fixed:
    """A system that always says the same."""

    series = Series("ucx", "machine", "cpp", "tag, default settings")

    def __init__(self, missing=None):
        self.missing = missing

    def absent(self, question):
        return self.missing

    def run(self, question):
        return [Reading(size, 1.5, 3) for size in question.sizes]


class Ending(Fixed):
    """A system in whose third run the harness gets SIGTERM."""

    runs = 0

    def run(self, question):
        self.runs += 1
        if self.runs == 3:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        return super().run(question)


def _make_record(**changes):
    fields = {
        "bench": "latency",
        "system": "weft",
        "model": "channel",
        "language": "cpp",
        "memory": "host",
        "path": "tag",
        "pes": 2,
        "size_bytes": 8,
        "metric": "latency_us",
        "unit": "us",
        "median": 0.3,
        "min": 0.2,
        "max": 0.5,
        "runs": 5,
        "warmup": 100,
        "git": "0123456789ab",
        "host": "a machine, 2 cores",
        "date": "2026-01-02T03:04:05Z",
    }
    return Record(**{**fields, **changes})


@pytest.fixture(scope="session")
def make_record():
    """Makes a valid record, with changes."""
    return _make_record


@pytest.fixture(scope="session")
def python_programs():
    """Folder of the measuring programs in Python."""
    return Path(__file__).resolve().parents[3] / "benchmarks" / "python"


@pytest.fixture
def fixed_system():
    return Fixed


@pytest.fixture
def ends_itself():
    return Ending()


@pytest.fixture(autouse=True)
def cores_stay_where_they_are(monkeypatch):
    """A hypervisor moves them at times, and a bench would begin to count its runs anew."""
    monkeypatch.setattr(running, "core_distance_ns", lambda _: 40.0)
