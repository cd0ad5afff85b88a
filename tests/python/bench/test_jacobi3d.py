"""The Jacobi3D bench: its cases, what is made of their records, what is drawn; and short real runs."""

import dataclasses

import pytest

from weft_bench import jacobi3d, jacobi3d_report
from weft_bench.errors import BenchError
from weft_bench.jacobi3d import LANGUAGES, PARTS, Case, cases, grown, measure
from weft_bench.launches import Launches
from weft_bench.programs import Programs
from weft_bench.provenance import Provenance
from weft_bench.record import read_records, write_records
from weft_bench.report import make_console

WHERE = Provenance(git="0123", host="a machine", date="2026-01-02T03:04:05Z")
DEFAULTS = {
    "pes": (1, 2),
    "odf": (1,),
    "scalings": ("weak", "strong"),
    "languages": ("cpp",),
    "models": ("channel",),
    "stagings": ("device", "host"),
    "size": None,
    "iterations": 3,
    "warmup": 1,
}
# Times of the parts of an iteration that a fake run says.
TIMES = {"overall": 1.0, "compute": 0.5, "pack": 0.25, "communication": 0.25}


def some_cases(memory, **changes):
    return list(cases(memory=memory, **{**DEFAULTS, **changes}))


def test_device_memory_is_sent_both_ways_and_host_memory_one():
    assert [case.way for case in some_cases("cuda", pes=(1,), scalings=("weak",))] == ["direct", "staged"]
    assert [case.way for case in some_cases("host", pes=(1,), scalings=("weak",))] == [""]


def test_streams_exchange_faces_of_device_memory_that_is_not_staged():
    models = ("channel", "queued", "graph")
    found = [
        (case.model, case.odf, case.way)
        for case in some_cases("cuda", pes=(2,), odf=(1, 8), scalings=("weak",), models=models)
    ]
    for odf in (1, 8):
        assert [(model, way) for model, factor, way in found if factor == odf] == [
            ("channel", "direct"),
            ("channel", "staged"),
            ("queued", "direct"),
            ("graph", "direct"),
        ]
    assert {case.model for case in some_cases("host", models=models)} == {"channel"}


def test_sizes_grow_with_the_pes_in_weak_scaling_alone():
    sizes = {(c.scaling, c.pes): c.points for c in some_cases("cuda", pes=(1, 2, 4, 8))}
    assert [sizes["weak", pes] for pes in (1, 2, 4, 8)] == [
        (768, 768, 768),
        (1536, 768, 768),
        (1536, 1536, 768),
        (1536, 1536, 1536),
    ]
    assert {sizes["strong", pes] for pes in (1, 2, 4, 8)} == {(1536, 1536, 1536)}
    assert grown((10, 10, 10), 6) == (20, 30, 10)
    assert [case.points for case in some_cases("host", size=7, pes=(2,))] == [(14, 7, 7), (7, 7, 7)]


@pytest.fixture
def fake_runs(monkeypatch):
    """Runs that say TIMES, times the number of PEs, and staged ones 4 times the communication."""
    log = []

    def run(case, programs):
        log.append(case)
        times = {part: seconds * case.pes for part, seconds in TIMES.items()}
        if case.way == "staged":
            times["communication"] *= 4
        return times

    monkeypatch.setattr(jacobi3d, "run", run)
    return log


def test_cases_take_turns_and_records_are_medians(fake_runs):
    wanted = some_cases("emulated", pes=(1,))
    outcome = measure(wanted, 3, Programs(), WHERE)
    assert fake_runs == wanted * 3
    assert outcome.cases == wanted
    record = outcome.records[wanted[0], "communication"]
    assert (record.bench, record.model, record.language, record.memory) == (
        "jacobi3d",
        "channel",
        "cpp",
        "emulated",
    )
    assert record.path == "communication, direct, weak, 32x32x32 points, ODF 1"
    assert (record.median, record.runs, record.size_bytes) == (0.25, 3, 8 * 32**3)


def test_staging_and_scaling_are_told_as_ratios(fake_runs):
    alone, alone_staged, direct, staged = some_cases("cuda", scalings=("weak",))
    outcome = measure([alone, alone_staged, direct, staged], 1, Programs(), WHERE)
    assert outcome.overhead_of_staging(direct) == 4.0
    assert outcome.overhead_of_staging(staged) is None
    assert outcome.overhead_of_staging(alone) is None, "one PE sends nothing to another"
    assert outcome.efficiency(direct) == 0.5, "twice the time on two PEs"
    outcome = measure([direct], 1, Programs(), WHERE)
    assert outcome.overhead_of_staging(direct) is None, "its staged partner was not measured"
    assert outcome.efficiency(direct) is None
    strong = some_cases("cuda", scalings=("strong",), stagings=("device",))
    outcome = measure(strong, 1, Programs(), WHERE)
    assert [outcome.efficiency(case) for case in strong] == [1.0, 0.25]


def test_a_case_that_fails_stops_no_other(monkeypatch):
    def run(case, programs):
        if case.way == "staged":
            raise BenchError("it fell over")
        return TIMES

    monkeypatch.setattr(jacobi3d, "run", run)
    wanted = some_cases("cuda", pes=(2,), scalings=("weak",))
    outcome = measure(wanted, 2, Programs(), WHERE)
    assert outcome.cases == wanted[:1]
    assert outcome.failed == {wanted[1]: "it fell over"}


def test_a_limit_leaves_the_runs_that_there_are(fake_runs, tmp_path):
    wanted = some_cases("emulated", pes=(1,))
    now = iter(range(100))
    launches = Launches(limit_s=11, file=tmp_path / "r.json", clock=lambda: next(now))
    launches.begin_part()
    outcome = measure(wanted, 9, Programs(), WHERE, launches)
    assert len(fake_runs) == 5
    assert [outcome.records[case, "overall"].runs for case in wanted] == [2, 1, 1, 1]
    assert outcome.stopped == ["the time is over: 1 to 2 of 9 runs"]
    assert list(read_records(tmp_path / "r.json")) == list(outcome.records.values())


def test_the_table_and_the_picture_have_every_case(fake_runs, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    outcome = measure(some_cases("cuda", odf=(1, 2)), 1, Programs(), WHERE)
    make_console().print(jacobi3d_report.table(outcome))
    text = capsys.readouterr().out
    assert text.count("C++ channel, direct") == 8
    assert text.count("4.0 x") == 4, "on two PEs"
    jacobi3d_report.write_plot(tmp_path / "times.png", outcome)
    assert (tmp_path / "times.png").stat().st_size > 10_000
    with pytest.raises(BenchError, match="nothing was measured"):
        jacobi3d_report.write_plot(tmp_path / "none.png", jacobi3d.Outcome())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("memory", "stagings"), [("host", ("",)), ("emulated", ("device", "host"))])
def test_real_runs(build_folder, tmp_path, language, memory, stagings):
    wanted = list(
        cases(
            memory=memory,
            pes=(2,),
            odf=(2,),
            scalings=("strong",),
            languages=(language,),
            models=("channel", "queued", "graph"),
            stagings=stagings,
            size=8,
            iterations=4,
            warmup=1,
        )
    )
    assert len(wanted) == (1 if memory == "host" else 4)
    outcome = measure(wanted, 1, Programs(build_folder / "benchmarks"), WHERE)
    assert outcome.failed == {}
    for case in wanted:
        parts = [outcome.seconds(case, part) for part in PARTS]
        assert parts[0] == pytest.approx(sum(parts[1:]))
    write_records(tmp_path / "r.json", outcome.records.values())
    assert len(list(read_records(tmp_path / "r.json"))) == 4 * len(wanted)


def test_a_real_failure_is_told_with_what_the_program_said(build_folder):
    case = Case("cpp", "channel", "host", "", "strong", 2, 9, (2, 2, 2), 1, 0)
    outcome = measure([case], 1, Programs(build_folder / "benchmarks"), WHERE)
    assert "cannot be cut into 18 blocks" in outcome.failed[case]


def test_a_missing_program_is_told_before_anything_runs(tmp_path):
    case = dataclasses.replace(some_cases("host")[0])
    with pytest.raises(BenchError, match="jacobi3d was not found"):
        jacobi3d.program(case, Programs(tmp_path))
