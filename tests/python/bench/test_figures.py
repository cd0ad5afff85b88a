"""Goals are judged by the right records, in the right direction."""

import pytest

from weft.bench.figures import BANDWIDTH, GOALS, LATENCY, Goal, judge, questions
from weft.bench.gpu_figures import GPU_GOALS, GPU_LATENCY, gpu_questions
from weft.bench.programs import Programs
from weft.bench.record import METRICS
from weft.bench.report import verdict_table


@pytest.fixture
def figure(make_record):
    """Makes the record of a figure for a question."""

    def make(question, median, **series):
        return make_record(
            bench=question.bench,
            pes=question.pes,
            size_bytes=question.sizes[0],
            metric=question.metric,
            unit=METRICS[question.metric][0],
            min=median / 2,
            median=median,
            max=median * 2,
            **{"path": "", **series},
        )

    return make


def verdict_of(text, records):
    return next(verdict for verdict in judge(records) if verdict.goal.text == text)


@pytest.mark.parametrize(("median", "met"), [(0.124, True), (0.126, False)])
def test_a_latency_is_to_be_below_a_multiple_of_the_best_raw_ucx(figure, median, met):
    records = [
        figure(LATENCY, median),
        figure(LATENCY, 0.1, system="ucx", model="machine", path="tag, Weft's settings"),
        figure(LATENCY, 0.2, system="ucx", model="machine", path="tag, default settings"),
        figure(LATENCY, 0.01, system="ucx", model="machine", path="am, Weft's settings"),
        figure(LATENCY, 0.001, language="python"),
    ]
    verdict = verdict_of("C++ channel, 8 B one way", records)
    assert verdict.met is met
    assert verdict.reference.path == "tag, Weft's settings"
    assert verdict.ratio == pytest.approx(median / 0.1)


@pytest.mark.parametrize(("median", "met"), [(28.6, True), (28.4, False)])
def test_a_bandwidth_is_to_be_above(figure, median, met):
    records = [
        figure(BANDWIDTH, median),
        figure(BANDWIDTH, 30.0, system="ucx", model="machine", path="tag, a"),
        figure(BANDWIDTH, 20.0, system="ucx", model="machine", path="tag, b"),
    ]
    assert verdict_of("C++ channel, 4 MiB bandwidth", records).met is met


def test_an_absolute_limit_needs_no_reference(figure):
    goal = next(goal for goal in GOALS if goal.text == "C++ local entry method")
    records = [figure(goal.question, 5.5, model="messaging", path=goal.paths[0])]
    assert verdict_of(goal.text, records).met is True


def test_without_a_reference_or_a_measurement_nothing_is_claimed(figure):
    assert verdict_of("C++ channel, 8 B one way", [figure(LATENCY, 0.1)]).met is None
    assert all(verdict.met is None for verdict in judge([]))


ALL = [(questions, GOALS), (gpu_questions, GPU_GOALS)]


@pytest.mark.parametrize(("make_questions", "goals"), ALL, ids=["host", "cuda"])
def test_every_goal_is_asked_for(make_questions, goals):
    asked = {
        (
            question,
            system.series.model,
            system.series.language,
            ", ".join(filter(None, (system.series.path, question.placement))),
        )
        for question, systems in make_questions(Programs())
        for system in systems
        if system.series.system == "weft"
    }
    for goal in goals:
        for path in goal.paths:
            assert (goal.question, goal.model, goal.language, path) in asked


def test_of_two_wire_paths_the_faster_counts(figure):
    fields = {"model": "messaging", "memory": "cuda"}
    records = [
        figure(GPU_LATENCY, 20.0, path="tagged, GPU pair", **fields),
        figure(GPU_LATENCY, 13.0, path="active, GPU pair", **fields),
        figure(GPU_LATENCY, 1.0, path="active, same GPU", **fields),
        figure(GPU_LATENCY, 2.0, model="messaging", path="active, GPU pair"),
        figure(GPU_LATENCY, 10.0, system="ucx", model="machine", memory="cuda", path="tag, a, GPU pair"),
    ]
    (verdict,) = [v for v in judge(records, GPU_GOALS) if v.goal.text == "C++ entry method, 8 B one way"]
    assert verdict.ratio == pytest.approx(1.3)
    assert verdict.met is True


@pytest.mark.parametrize(("make_questions", "goals"), ALL, ids=["host", "cuda"])
def test_every_reference_is_asked_for(make_questions, goals):
    asked = {
        (question, system.series.system, system.series.model)
        for question, systems in make_questions(Programs())
        for system in systems
    }
    for goal in goals:
        if goal.reference is not None:
            assert (goal.question, goal.reference.system, goal.reference.model) in asked


def test_the_table_has_a_row_for_every_goal():
    assert verdict_table(judge([])).row_count == len(GOALS)
    assert all(isinstance(goal, Goal) for goal in GOALS)
