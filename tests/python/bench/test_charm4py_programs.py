"""What the comparison with charm4py keeps of programs that fail."""

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from weft_bench.errors import BenchError

FILE = Path(__file__).resolve().parents[3] / "benchmarks/charm/charm4py_programs.py"


def load():
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[FILE.stem] = module  # for dataclasses
    spec.loader.exec_module(module)
    return module


charm4py_programs = load()


@dataclasses.dataclass
class Fixed:
    """A system whose launches of "sssp" take `seconds` and those of "nqueen" fail from the second one on."""

    name: str
    seconds: float
    launches: int = 0

    def time(self, program, sources):
        if "nqueen" in program.path:
            self.launches += 1
            if self.launches > 1:
                raise BenchError(f"{program.name} on {self.name} ended with status -11")
        return self.seconds


@pytest.fixture
def compared(monkeypatch, tmp_path):
    """Runs the comparison with `words` between two such systems; its exit status and records."""

    def run(*words):
        both = [Fixed("charm4py", 6.0), Fixed("weft", 2.0)]
        monkeypatch.setattr(charm4py_programs, "systems", lambda options: both)
        file = tmp_path / "records.jsonl"
        status = charm4py_programs.main(
            ["--sources", "s", "--charm4py", "c", "--runs", "3", *words, "--json", str(file)]
        )
        return status, [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    return run


def test_a_program_that_fails_has_a_record(compared, capsys):
    status, records = compared("--only", "examples/nqueen")
    assert status == 1
    (record,) = records
    assert record["program"] == "pool, n queens"
    assert "ended with status -11" in record["error"]
    assert record["times"] == {"charm4py": [6.0], "weft": [2.0]}
    assert "ratio" not in record
    assert "pool, n queens: " in capsys.readouterr().out


def test_the_programs_after_it_run(compared):
    status, records = compared("--only", "")
    assert status == 1
    failed = [record["program"] for record in records if "error" in record]
    assert failed == ["pool, n queens"]
    assert [record["program"] for record in records] == [
        program.name for program in charm4py_programs.PROGRAMS
    ]


def test_the_ratio_is_that_of_the_medians(compared):
    status, records = compared("--only", "sssp")
    assert status == 0
    (record,) = records
    assert record["ratio"] == 3.0
    assert record["times"] == {"charm4py": [6.0] * 3, "weft": [2.0] * 3}
