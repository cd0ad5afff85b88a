"""What ucx_perftest is told, and what is read from what it says."""

import pytest

from weft_bench import system_ucx
from weft_bench.errors import BenchError
from weft_bench.programs import Programs
from weft_bench.question import Question, Step
from weft_bench.system_ucx import (
    DEFAULT_SETTINGS,
    HOST_SETTINGS,
    WEFT_SETTINGS,
    Tool,
    UcxPerftest,
    batch_line,
    parse_output,
)

NAMES = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr"
OUTPUT = f"""\
[1795157039.546944] [host:10508:0] a warning, with, commas, in, it, that, means, nothing
batch,{NAMES}
8,200000,0.070,0.071,0.068,1.00,2.00,14661682,14000000
4194304, 500,286.065,289.522,290.5,3454.0,10000.00,3454,2500
"""
STEPS = [Step(8, 200000, 10), Step(4 << 20, 500, 10)]
SIZES = (8, 4 << 20)


@pytest.mark.parametrize(
    ("bench", "values"),
    [
        ("latency", [0.068, 290.5]),
        ("bandwidth", [2.0 * 2**20 / 1e9, 10000.0 * 2**20 / 1e9]),
        ("rate", [14.0, 0.0025]),
    ],
)
def test_the_overall_column_of_the_bench_is_read(bench, values):
    readings = parse_output(OUTPUT, Question(bench, SIZES), STEPS)
    assert [reading.size_bytes for reading in readings] == list(SIZES)
    assert [reading.value for reading in readings] == pytest.approx(values)


def test_a_size_without_a_figure_is_an_error_with_what_the_tool_said():
    output = "\n".join([*OUTPUT.splitlines()[:-1], "connection lost"])
    with pytest.raises(BenchError, match=r"\[4194304\] bytes(.|\n)*connection lost"):
        parse_output(output, Question("latency", SIZES), STEPS)


def test_batch_lines_name_the_test_and_count_messages():
    step = Step(64, 1000, 100)
    assert batch_line("tag", Question("latency", (64,)), step) == "64 -t tag_lat -s 64 -n 1000 -w 100\n"
    assert batch_line("am", Question("rate", (64,)), step) == "64 -t ucp_am_bw -s 64 -n 64000 -w 6400 -O 64\n"
    assert batch_line("tag", Question("latency", (64,), memory="cuda"), step).endswith("-m cuda\n")


def test_absence_says_how_to_install(monkeypatch):
    monkeypatch.setattr(system_ucx, "perftest", lambda: None)
    assert "pip install" in UcxPerftest("tag", DEFAULT_SETTINGS).absent(Question("latency", (8,)))


def test_both_settings_are_series_of_their_own():
    assert UcxPerftest("tag", DEFAULT_SETTINGS).series != UcxPerftest("tag", WEFT_SETTINGS).series


def test_the_settings_that_are_tried_are_series_of_their_own():
    assert len({UcxPerftest("tag", settings).series for settings in HOST_SETTINGS}) == len(HOST_SETTINGS)
    assert {DEFAULT_SETTINGS, WEFT_SETTINGS} < set(HOST_SETTINGS)
    # Endpoint error handling excludes cma.
    assert not [s for s in HOST_SETTINGS if s.error_handling and "cma" in s.name]


DISTINCT = Question("bandwidth", (65536,), distinct=True)


def test_distinct_buffers_need_a_program_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setattr(system_ucx, "perftest", lambda: Tool(tmp_path / "ucx_perftest", {}))
    programs = Programs(tmp_path)
    assert str(tmp_path) in UcxPerftest("tag", WEFT_SETTINGS, programs).absent(DISTINCT)
    (tmp_path / "raw_ucx").touch()
    assert UcxPerftest("tag", WEFT_SETTINGS, programs).absent(DISTINCT) is None
    assert "tagged messages only" in UcxPerftest("am", WEFT_SETTINGS, programs).absent(DISTINCT)


@pytest.mark.parametrize("settings", HOST_SETTINGS, ids=lambda settings: settings.name)
def test_that_program_is_told_the_settings(monkeypatch, tmp_path, settings):
    (tmp_path / "raw_ucx").touch()
    tool = Tool(tmp_path / "ucx_perftest", {"LD_LIBRARY_PATH": "ucx"})
    monkeypatch.setattr(system_ucx, "perftest", lambda: tool)
    calls = []

    def run(command, _, environment, *__):
        calls.append((command, environment))
        return '{"size_bytes": 65536, "metric": "bandwidth_GBps", "value": 3.0}\n'

    monkeypatch.setattr(system_ucx, "capture", run)
    (reading,) = UcxPerftest("tag", settings, Programs(tmp_path)).run(DISTINCT)
    ((command, environment),) = calls
    assert reading.value == 3.0
    assert command[0] == str(tmp_path / "raw_ucx")
    assert command[2].startswith("65536:") and command[2].count(":") == 3
    assert ("tag-with-error-handling" in command) == settings.error_handling
    assert environment == {"LD_LIBRARY_PATH": "ucx", **dict(settings.environment)}


@pytest.mark.skipif(system_ucx.perftest() is None, reason="no ucx_perftest here: pip install libucx-cu13")
@pytest.mark.parametrize("bench", ["latency", "bandwidth", "rate"])
def test_the_real_tool_answers(bench, monkeypatch):
    question = Question(bench, (8, 4096))
    monkeypatch.setattr(
        Question, "steps", lambda self, message_us: [Step(size, 20, 2) for size in self.sizes]
    )
    readings = UcxPerftest("tag", WEFT_SETTINGS).run(question)
    assert [reading.size_bytes for reading in readings] == [8, 4096]
    assert all(reading.value > 0 for reading in readings)
