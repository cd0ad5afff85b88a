"""weft bench cores: what is measured, marks of too few cores, tables, pages; short runs of its programs."""

import argparse
import json
import re
import subprocess
import sys

import pytest

from weft_bench import cli
from weft_bench.cores import machine, programs, running
from weft_bench.cores.machine import (
    Cores,
    cores_of,
    default_pes,
    distance_label,
    distances_ns,
    median_cores,
    sentence,
    spin,
)
from weft_bench.cores.points import OPERATIONS, Point, points_of, read_figures
from weft_bench.cores.programs import MODELS, REFERENCES, MpiProgram, measured
from weft_bench.cores.report import RATIO, lines_of, problem_lines, write_pages
from weft_bench.cores.running import Case, Outcome, Run, measure, records_of
from weft_bench.errors import BenchError
from weft_bench.launches import Launches
from weft_bench.programs import Programs
from weft_bench.provenance import Provenance
from weft_bench.record import read_records
from weft_bench.system import Reading, Series

WHERE = Provenance(git="0123", host="a machine", date="2026-01-02T03:04:05Z")
BARRIER = Point("barrier", 0)
WINDOWS = Point("windows", 8)
ALL = Cores(2, 2.0, 1.0)
FEW = Cores(2, 1.1, 0.5)


class Fake:
    """A program that is never launched."""

    def __init__(self, name, system="weft", model="mpi", missing=None):
        self.name = name
        self.series = Series(system, model, "cpp")
        self.missing = missing

    def absent(self, pes):
        return self.missing

    def knows(self, point):
        return point != BARRIER or self.name != "no barrier"


def make_run(value, cores=ALL, path="", points=(WINDOWS, BARRIER)):
    return Run({point: Reading(point.size_bytes, value, 7) for point in points}, path, cores)


def run_cli(*arguments):
    parser = argparse.ArgumentParser(prog="weft")
    cli.add_parser(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["bench", "cores", *map(str, arguments)])
    return parsed.function(parsed)


# --- What is measured


def test_each_operation_has_its_sizes_unless_others_are_asked_for():
    names = [point.argument() for point in points_of(["windows", "solver_step", "barrier"], None)]
    assert names == [*(f"windows:{size}" for size in OPERATIONS["windows"]), "solver_step:8192", "barrier:0"]
    assert points_of(["scan", "barrier"], [8, 64]) == [Point("scan", 8), Point("scan", 64), BARRIER]
    assert (WINDOWS.metric, BARRIER.metric, BARRIER.bench) == ("rate_Mps", "time_us", "cores_barrier")


@pytest.mark.parametrize("size", [0, 4, 12])
def test_sizes_that_are_no_doubles_are_refused(size):
    with pytest.raises(BenchError, match="multiples of 8"):
        points_of(["scan"], [size])


def test_figures_are_found_among_what_launchers_print():
    output = "\n".join(
        [
            "a banner",
            "{not JSON",
            '{"library": "Open MPI v4.1.6, package"}',
            '{"operation": "barrier", "size_bytes": 0, "value": 1.5, "warmup": 34}',
            '{"operation": "windows", "size_bytes": 8, "value": 7.5, "warmup": 2}',
        ]
    )
    readings, library = read_figures(output, [WINDOWS, BARRIER], "it")
    assert readings == {WINDOWS: Reading(8, 7.5, 2), BARRIER: Reading(0, 1.5, 34)}
    assert library == "Open MPI v4.1.6, package"
    with pytest.raises(BenchError, match=r"it printed no figure of scan:8; its last lines:\n  a banner"):
        read_figures(output, [BARRIER, Point("scan", 8)], "it")


# --- Cores


def test_pe_numbers_are_chosen_by_the_cores(monkeypatch):
    chosen = {}
    for cores in (1, 2, 6, 16, 32):
        monkeypatch.setattr(machine, "number_of_cores", lambda cores=cores: cores)
        chosen[cores] = default_pes()
    assert chosen == {1: [2], 2: [2], 6: [2, 4], 16: [2, 4, 8, 16], 32: [2, 4, 8, 16]}


@pytest.mark.parametrize(
    ("alone", "together", "are_given", "text"),
    [
        (1000, [990, 1000], True, "2.0 of 2 cores given, the slowest PE 0.99 of the fastest"),
        (1000, [700, 1000], False, "too few cores: 1.7 of 2 cores given, the slowest PE 0.70 of the fastest"),
        (1000, [600, 600], False, "too few cores: 1.2 of 2 cores given, the slowest PE 1.00 of the fastest"),
        (0, [0, 0], False, "too few cores: 0.0 of 2 cores given, the slowest PE 0.00 of the fastest"),
    ],
)
def test_the_spin_test_says_whether_cores_are_given(alone, together, are_given, text):
    cores = cores_of(alone, together)
    assert cores.are_given == are_given
    assert sentence(2, cores) == text


def test_more_pes_than_cores_are_too_few_cores(monkeypatch):
    monkeypatch.setattr(machine, "number_of_cores", lambda: 2)
    assert sentence(8, None) == "too few cores: 8 PEs on 2"


def test_the_median_of_tests_counts():
    assert median_cores([ALL, FEW, ALL]) == ALL
    assert median_cores([ALL, FEW, FEW]) == FEW


def test_the_distance_of_the_cores_is_told():
    assert distance_label([40.4]) == "a cache line takes 40 ns between cores"
    label = distance_label([40, 180, 60])
    assert label == "a cache line takes 40 to 180 ns, median 60, between cores"
    assert "not known" in distance_label([])


def test_a_real_spin_test_counts():
    cores = spin(3)
    assert cores.pes == 3
    assert cores.worth > 0
    assert 0 <= cores.evenness <= 1


def test_real_distances_are_of_each_pair(build_folder, monkeypatch):
    found = Programs(build_folder / "benchmarks")
    cores = min(4, machine.number_of_cores())
    assert len(distances_ns(found, 4)) == cores * (cores - 1) / 2
    assert len(distances_ns(found, 2)) == min(1, cores - 1)
    monkeypatch.setattr(machine, "number_of_cores", lambda: 1)
    assert distances_ns(found, 2) == []


# --- Programs


def test_mpich_is_absent_with_more_pes_than_cores(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "number_of_cores", lambda: 2)
    monkeypatch.setattr(MpiProgram, "_compiler", lambda self: ["mpicc"])
    mpich = MpiProgram("MPICH", "mpich", tmp_path)
    assert mpich.absent(2) is None
    assert "poll without yielding" in mpich.absent(4)
    assert MpiProgram("Open MPI", "openmpi", tmp_path).absent(4) is None


def test_an_mpi_without_its_compiler_is_absent(monkeypatch, tmp_path):
    monkeypatch.setattr(MpiProgram, "_launcher", lambda self, pes: [str(tmp_path / "mpiexec")])
    openmpi = MpiProgram("Open MPI", "openmpi", tmp_path)
    assert "mpicc and mpiexec are not here" in openmpi.absent(2)
    (tmp_path / "mpicc").touch()
    assert openmpi.absent(2) is None
    (tmp_path / "mpicc.openmpi").touch()
    assert openmpi._compiler() == [str(tmp_path / "mpicc.openmpi")]


def test_the_library_must_be_the_expected_one(monkeypatch, tmp_path):
    monkeypatch.setattr(MpiProgram, "_compiler", lambda self: ["mpicc"])
    openmpi = MpiProgram("Open MPI", "openmpi", tmp_path)
    assert openmpi.version("Open MPI v4.1.6, package: Debian") == "4.1.6"
    assert MpiProgram("MPICH", "mpich", tmp_path).version("MPICH Version:      5.0.2 MPICH") == "5.0.2"
    assert MpiProgram("Weft's MPI", "weft", tmp_path).version("Weft 0.1.0, MPI 5.0") == ""
    with pytest.raises(BenchError, match="mpicc is not of Open MPI, but of: MPICH Version: 5"):
        openmpi.version("MPICH Version: 5")


def test_chares_and_teams_have_no_scan(tmp_path):
    found = {program.name: program for program in measured(MODELS, REFERENCES, Programs(), tmp_path)}
    scan = Point("scan", 8)
    assert [name for name, program in found.items() if program.knows(scan)] == [
        "Weft's MPI",
        "Open MPI",
        "MPICH",
    ]
    assert all(program.knows(WINDOWS) for program in found.values())
    assert [program.name for program in measured(["teams"], [], Programs(), tmp_path)] == ["teams, C++"]


# --- Turns and records


@pytest.fixture
def fake_runs(monkeypatch):
    """Runs that are not launched; the third of each case takes long."""
    log = []

    def run(case, points, budget_s):
        log.append(case.label)
        if case.program.name == "broken":
            raise BenchError("it fell over")
        return make_run(9.0 if log.count(case.label) == 3 else 2.0)

    monkeypatch.setattr(running, "run", run)
    return log


def measure_fakes(fakes, tmp_path, runs=3):
    return measure(
        fakes,
        [2, 4],
        [WINDOWS, BARRIER],
        runs=runs,
        budget_s=0.01,
        provenance=WHERE,
        launches=Launches(file=tmp_path / "figures.jsonl"),
    )


def test_programs_take_turns_and_records_are_medians(fake_runs, tmp_path):
    fakes = [Fake("a"), Fake("b", "openmpi"), Fake("gone", missing="install it"), Fake("broken", "mpich")]
    outcome = measure_fakes(fakes, tmp_path)
    turn = ["a, 2 PEs", "b, 2 PEs", "a, 4 PEs", "b, 4 PEs"]
    assert [label for label in fake_runs if "broken" not in label] == turn * 3
    assert fake_runs.count("broken, 2 PEs") == 1, "a case that fails is run no further"
    assert outcome.absent == {"gone, 2 PEs": "install it", "gone, 4 PEs": "install it"}
    assert outcome.failed == {"broken, 2 PEs": "it fell over", "broken, 4 PEs": "it fell over"}
    record = outcome.records[0]
    assert (record.bench, record.system, record.pes, record.size_bytes) == ("cores_windows", "weft", 2, 8)
    assert (record.median, record.max, record.runs, record.warmup) == (2.0, 9.0, 3, 7)
    assert record.host == "a machine, 2.0 of 2 cores given, the slowest PE 1.00 of the fastest"
    assert list(read_records(tmp_path / "figures.jsonl")) == outcome.records
    assert problem_lines(outcome) == [
        "absent: gone, 2 PEs; gone, 4 PEs: install it",
        "failed: broken, 2 PEs: it fell over",
        "failed: broken, 4 PEs: it fell over",
    ]


def test_a_program_that_knows_no_point_is_not_run(fake_runs, tmp_path):
    outcome = measure(
        [Fake("no barrier")],
        [2],
        [BARRIER],
        runs=1,
        budget_s=0.01,
        provenance=WHERE,
        launches=Launches(),
    )
    assert fake_runs == []
    assert outcome.records == []


# --- Tables and pages


def some_records():
    cases = {
        Case(2, Fake("a")): [make_run(2.0), make_run(4.0, FEW), make_run(6.0, FEW)],
        Case(2, Fake("b", "openmpi")): [make_run(5.0, path="4.1.6")] * 3,
        Case(2, Fake("c", model="messaging")): [make_run(8.0, points=[WINDOWS])],
    }
    return records_of(cases, WHERE)


def test_a_table_has_marks_the_best_and_the_ratio():
    titles, lines, best_columns = lines_of(some_records())
    assert titles == ["operation", "bytes", "unit", "Weft's MPI", "Open MPI 4.1.6", "chares, C++", RATIO]
    assert lines == [
        ["windows", "8", "M/s", "4.00*", "5.00", "8.00", "0.80"],
        ["barrier", "", "us", "4.00*", "5.00", "-", "0.80"],
    ]
    assert [titles[column] for column in best_columns] == ["chares, C++", "Weft's MPI"], "rates and times"


def test_without_another_mpi_there_is_no_ratio():
    titles, lines, best_columns = lines_of([r for r in some_records() if r.system == "weft"])
    assert titles[3:] == ["Weft's MPI", "chares, C++"]
    assert (lines[1], best_columns) == (["barrier", "", "us", "4.00*", "-"], [4, 3])


def test_a_page_has_one_table_and_one_plot(tmp_path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    outcome = Outcome(some_records(), {2: "2.0 of 2 cores given"}, absent={"MPICH, 2 PEs": "no mpicc"})
    (page,) = write_pages(tmp_path / "new", outcome, ["a machine"], plots=True)
    text = page.read_text()
    assert text.startswith("# 2 PEs\n\na machine; 2026-01-02T03:04:05Z; 0123.\n")
    assert "Medians of 1 to 3 runs; 2.0 of 2 cores given." in text
    assert "| windows | 8 | M/s | 4.00* | 5.00 | **8.00** | 0.80 |" in text
    assert "![Medians by size](pes-2.png)" in text
    assert text.endswith("- absent: MPICH, 2 PEs: no mpicc\n")
    assert (tmp_path / "new" / "pes-2.png").stat().st_size > 10_000


# --- The command and its programs


def test_help_names_the_method(capsys):
    with pytest.raises(SystemExit):
        run_cli("--help")
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    for word in ("windows of 64", "MPI_ANY_SOURCE", "barrier", "median", "too few cores", "pes-N.md"):
        assert word in text


def test_one_pe_has_nobody_to_talk_to(capsys):
    assert run_cli("--pes", "1,2") == 1
    assert "2 PEs or more" in capsys.readouterr().err


def test_a_quick_run_measures_everything(build_folder, tmp_path, capsys):
    output = tmp_path / "figures"
    arguments = ["--quick", "--seconds", "0.0005", "--sizes", "8,1K", "--pes", "2", "--output", output]
    assert run_cli(*arguments, "--programs", build_folder / "benchmarks") == 0
    text = capsys.readouterr().out
    assert "cores; a cache line takes" in text
    assert "1 runs are too few to rely on" in text
    records = list(read_records(output / "figures.jsonl"))
    ways = {(r.model, r.language) for r in records if r.system == "weft"}
    assert ways == {("mpi", "cpp"), ("messaging", "cpp"), ("messaging", "python"), ("pgas", "cpp")}
    for model, language in ways:
        found = {r.bench for r in records if (r.system, r.model, r.language) == ("weft", model, language)}
        lacking = {f"cores_{name}" for name in OPERATIONS} - found
        assert lacking == (set() if model == "mpi" else {"cores_reduce_scatter", "cores_scan"})
    assert all(record.median > 0 for record in records)
    assert (output / "pes-2.md").is_file()


@pytest.mark.parametrize("program", ["cores_chares", "cores_teams", "cores_chares.py"])
@pytest.mark.parametrize("pes", [2, 3])
def test_every_operation_of_the_programs(build_folder, python_programs, program, pes):
    folder = python_programs if program.endswith(".py") else build_folder / "benchmarks"
    names = [name for name in OPERATIONS if name not in ("barrier", "reduce_scatter", "scan")]
    points = ["barrier:0", *(f"{name}:{size}" for name in names for size in (8, 100000))]
    command = [sys.executable, "-m", "weft", "run", "-n", str(pes), str(folder / program), "0.0005", *points]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [f"{line['operation']}:{line['size_bytes']}" for line in found] == points
    assert all(line["value"] > 0 and line["warmup"] > 0 for line in found)


@pytest.mark.parametrize(
    "arguments", [[], ["0", "barrier:0"], ["x", "barrier:0"], ["1", "barrier"], ["1", "scan:4"], ["1", "x:8"]]
)
def test_a_wrong_command_line_ends_with_a_sentence(build_folder, arguments):
    command = [sys.executable, "-m", "weft", "run", "-n", "2", build_folder / "benchmarks" / "cores_chares"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "benchmark: " in done.stderr
