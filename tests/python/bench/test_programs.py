"""Measuring programs are found where they are built; what is missing is told with what to do."""

import pytest

from weft_bench import programs
from weft_bench.errors import BenchError
from weft_bench.programs import Programs
from weft_bench.provenance import provenance


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder that looks like a checkout with one build, and is the one in use."""
    (tmp_path / "build" / "benchmarks").mkdir(parents=True)
    (tmp_path / "benchmarks" / "python").mkdir(parents=True)
    monkeypatch.setattr(programs, "checkout", lambda: tmp_path)
    return tmp_path


def test_scripts_come_from_the_sources_and_executables_from_the_build(checkout):
    script = checkout / "benchmarks" / "python" / "ping.py"
    binary = checkout / "build" / "benchmarks" / "ping"
    for path in (script, binary):
        path.touch()
    assert Programs().find("ping.py") == script
    assert Programs().find("ping") == binary
    assert Programs().find("pong") is None


def test_a_given_folder_takes_the_place_of_the_builds(checkout, tmp_path):
    (checkout / "build" / "benchmarks" / "ping").touch()
    script = checkout / "benchmarks" / "python" / "ping.py"
    script.touch()
    other = tmp_path / "other"
    other.mkdir()
    assert Programs(other).find("ping") is None
    (other / "ping").touch()
    assert Programs(other).find("ping") == other / "ping"
    assert Programs(other).find("ping.py") == script


def test_programs_of_a_quick_build_are_not_taken_if_there_are_others(checkout):
    quick, full = (checkout / "build" / name / "benchmarks" / "ping" for name in ("quick", "release"))
    for path in (full, quick):  # the quick ones are newer
        path.parent.mkdir(parents=True)
        path.touch()
    (checkout / "build" / "quick" / "CMakeCache.txt").write_text("WEFT_QUICK_BUILD:BOOL=ON\n")
    assert Programs().find("ping") == full
    full.unlink()
    assert Programs().find("ping") == quick


@pytest.mark.parametrize(("name", "advice"), [("ping", "WEFT_BUILD_BENCHMARKS=ON"), ("ping.py", "checkout")])
def test_what_is_missing_is_told_with_what_to_do(checkout, name, advice):
    with pytest.raises(BenchError, match=f"{name} was not found.*{advice}"):
        Programs().need(name)


def test_outside_a_checkout_nothing_is_found(monkeypatch):
    monkeypatch.setattr(programs, "checkout", lambda: None)
    assert Programs().find("ping.py") is None


def test_provenance_tells_the_machine_and_the_time_but_no_host_name():
    where = provenance()
    assert where.git
    assert "cores" in where.host
    assert where.date.endswith("Z")
