"""The bench of heat conduction in 3D: its cases, what is made of the windows, what is drawn; a short run."""

import dataclasses
import json

import pytest

from weft_bench import heat3d, heat3d_report
from weft_bench.errors import BenchError
from weft_bench.heat3d import FIGURES, Case, Outcome, Run, cases, edges, histogram, measure, summary
from weft_bench.launches import Launches
from weft_bench.programs import Programs
from weft_bench.provenance import Provenance
from weft_bench.record import read_records
from weft_bench.report import make_console

WHERE = Provenance(git="0123", host="a machine", date="2026-01-02T03:04:05Z")
# Windows of a fake run, in microseconds.
WINDOWS = tuple(float(time) for time in range(1, 102))


def some_cases(*sizes):
    return list(cases(memory="host", pes=2, odf=1, sizes=sizes, steps=52, warmup=3))


@pytest.fixture
def fake_runs(monkeypatch):
    """Runs with WINDOWS; those of channels take twice as long."""
    log = []

    def run(case, programs):
        log.append(case)
        factor = 2 if case.exchange == "channel" else 1
        return Run(tuple(factor * window for window in WINDOWS))

    monkeypatch.setattr(heat3d, "run", run)
    return log


def test_large_bodies_are_given_fewer_steps():
    found = {
        case.size: case.steps
        for case in cases(memory="host", pes=2, odf=1, sizes=(8, 64, 512), steps=None, warmup=1)
    }
    assert found == {8: 10_000, 64: 1525, 512: 200}


def test_figures_of_a_run_are_the_median_and_distances_of_quantiles():
    run = Run(WINDOWS)
    assert [run.figure(name) for name in FIGURES] == [51.0, 50.0, 90.0]
    assert Run((1.0, 2.0)).quantile(0.25) == 1.25
    assert Run((4.0,)).quantile(0.95) == 4.0


def test_both_exchanges_take_turns_and_records_are_medians(fake_runs):
    wanted = some_cases(8, 16)
    outcome = measure(wanted, 3, Programs(), WHERE)
    assert fake_runs == wanted * 3
    assert [case.exchange for case in wanted] == ["channel", "pgas"] * 2
    record = outcome.records[wanted[0], "median"]
    assert (record.bench, record.model, record.language, record.memory) == (
        "heat3d",
        "channel",
        "cpp",
        "host",
    )
    assert record.path == "two steps, median, 8x8x8 points, ODF 1, 52 steps"
    assert (record.median, record.unit, record.runs) == (pytest.approx(102e-6), "s", 3)
    assert outcome.records[wanted[1], "5 % to 95 %"].median == pytest.approx(90e-6)


def test_turns_in_which_one_sided_is_below_are_counted():
    two, one = some_cases(8)
    runs = {two: [Run((2.0,)), Run((2.0,)), Run((2.0,))], one: [Run((1.0,)), Run((2.0,)), Run((3.0,))]}
    assert Outcome(turns=runs).one_sided_wins((two, one), "median") == (1, 3)
    runs[one][0] = Run((1.0,), distance_ns=50.0)
    assert Outcome(turns=runs).one_sided_wins((two, one), "median") == (0, 2), "two turns at one distance"


def test_a_run_is_made_again_while_the_cores_move(fake_runs):
    found = iter([50.0, 180.0, 180.0, 180.0])
    outcome = measure(some_cases(8)[:1], 1, Programs(), WHERE, distance=lambda: next(found))
    assert len(fake_runs) == 2
    assert [one.distance_ns for one in outcome.runs[fake_runs[0]]] == [180.0]
    assert heat3d_report.distances(outcome) == ["a cache line between the cores takes 180 ns"]


def test_runs_at_another_distance_are_left_out_and_told(fake_runs):
    found = iter([50.0, 50.0, 180.0, 180.0, 50.0, 50.0])
    (two, one) = wanted = some_cases(8)
    outcome = measure([*wanted, *some_cases(16)[:1]], 1, Programs(), WHERE, distance=lambda: next(found))
    assert list(outcome.runs) == [two, *some_cases(16)[:1]]
    assert [run.distance_ns for run in outcome.turns[one]] == [180.0]
    assert heat3d_report.distances(outcome) == [
        "a cache line between the cores takes 50 ns",
        "the figures leave out 1 runs in which the cores were at another distance",
    ]


def test_a_histogram_counts_each_window_once():
    runs = [Run((1.0, 2.0, 2.5, 9.0)), Run((1.5, 3.0))]
    assert histogram(runs, [1.0, 2.0, 3.0]) == [2, 2], "3.0 and 9.0 lie beyond the last edge"
    bins = edges([[Run(WINDOWS)], [Run(WINDOWS)]], bins=10)
    assert (bins[0], bins[-1], len(bins)) == (1.0, 376.0, 11)
    assert sum(histogram([Run(WINDOWS)], bins)) == len(WINDOWS)
    assert edges([[Run((3.0, 3.0))]], bins=1) == [3.0, 4.0], "windows that are all equal"


def test_a_case_that_fails_stops_no_other(monkeypatch):
    def run(case, programs):
        if case.exchange == "pgas":
            raise BenchError("it fell over")
        return Run(WINDOWS)

    monkeypatch.setattr(heat3d, "run", run)
    two, one = some_cases(8)
    outcome = measure([two, one], 2, Programs(), WHERE)
    assert list(outcome.runs) == [two]
    assert outcome.failed == {one: "it fell over"}
    assert outcome.pairs == []


def test_a_limit_leaves_the_runs_that_there_are(fake_runs, tmp_path):
    now = iter(range(100))
    launches = Launches(limit_s=7, file=tmp_path / "r.json", clock=lambda: next(now))
    launches.begin_part()
    outcome = measure(some_cases(8), 9, Programs(), WHERE, launches)
    assert outcome.stopped == ["the time is over: 1 to 2 of 9 runs"]
    assert list(read_records(tmp_path / "r.json")) == list(outcome.records.values())


def test_the_table_the_picture_and_the_summary_have_every_case(fake_runs, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    outcome = measure(some_cases(8, 16), 2, Programs(), WHERE)
    make_console().print(heat3d_report.table(outcome))
    text = capsys.readouterr().out
    assert text.count("one-sided (pgas)") == 2
    (line, _) = heat3d_report.comparison(outcome)
    assert line.startswith("8^3 points, one-sided to two-sided: median x 0.50 (below in 2 of 2 turns)")
    heat3d_report.write_plot(tmp_path / "times.png", outcome)
    assert (tmp_path / "times.png").stat().st_size > 10_000
    with pytest.raises(BenchError, match="nothing was measured"):
        heat3d_report.write_plot(tmp_path / "none.png", Outcome())
    found = [json.loads(json.dumps(entry)) for entry in summary(outcome, WHERE)]
    assert [(entry["size"], entry["exchange"], len(entry["runs"])) for entry in found] == [
        (8, "channel", 2),
        (8, "pgas", 2),
        (16, "channel", 2),
        (16, "pgas", 2),
    ]
    assert found[0]["windows"] == 2 * len(WINDOWS) == sum(found[0]["counts"])
    assert found[0]["runs"][0]["q50_us"] == 102.0
    assert found[0]["bin_edges_us"] == found[1]["bin_edges_us"], "side by side on the same axis"


@pytest.mark.parametrize("memory", ["host", "emulated"])
def test_real_runs(build_folder, memory):
    wanted = [dataclasses.replace(case, memory=memory) for case in some_cases(6)]
    outcome = measure(wanted, 1, Programs(build_folder / "benchmarks"), WHERE)
    assert outcome.failed == {}
    assert [len(runs[0].windows_us) for runs in outcome.runs.values()] == [100, 100]


def test_a_real_failure_is_told_with_what_the_program_said(build_folder):
    case = Case("pgas", "host", 2, 9, 2, 3, 0)
    outcome = measure([case], 1, Programs(build_folder / "benchmarks"), WHERE)
    assert "cannot be cut into 18 blocks" in outcome.failed[case]
