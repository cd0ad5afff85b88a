"""What the tests of the harness share."""

from pathlib import Path

import pytest

from weft.bench.record import Record


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
