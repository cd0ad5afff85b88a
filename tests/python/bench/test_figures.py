"""Goals are judged by the right records, in the right direction."""

import pytest

from weft.bench.figures import BANDWIDTH, GOALS, LATENCY, Goal, judge, questions
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
    records = [figure(goal.question, 5.5, model="messaging", path=goal.path)]
    assert verdict_of(goal.text, records).met is True


def test_without_a_reference_or_a_measurement_nothing_is_claimed(figure):
    assert verdict_of("C++ channel, 8 B one way", [figure(LATENCY, 0.1)]).met is None
    assert all(verdict.met is None for verdict in judge([]))


def test_every_goal_is_asked_for():
    asked = {
        (question, system.series.model, system.series.language, system.series.path)
        for question, systems in questions(Programs())
        for system in systems
        if system.series.system == "weft"
    }
    for goal in GOALS:
        assert (goal.question, goal.model, goal.language, goal.path) in asked


def test_every_reference_is_asked_for():
    asked = {
        (question, system.series.system, system.series.model)
        for question, systems in questions(Programs())
        for system in systems
    }
    for goal in GOALS:
        if goal.reference is not None:
            assert (goal.question, goal.reference.system, goal.reference.model) in asked


def test_the_table_has_a_row_for_every_goal():
    assert verdict_table(judge([])).row_count == len(GOALS)
    assert all(isinstance(goal, Goal) for goal in GOALS)
