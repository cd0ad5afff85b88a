"""Goals are judged by the right records, in the right direction."""

import dataclasses

import pytest

from goals.figures import (
    BANDWIDTH,
    BEST,
    BUSY,
    DISTINCT_BANDWIDTH,
    GOALS,
    LARGE_LATENCY,
    LATENCY,
    REDUCTION,
    Goal,
    goals_beside,
    judge,
    judge_files,
    narrowed,
    questions,
)
from goals.gpu_figures import comparisons, gpu_goals, gpu_questions, judge_gpu
from goals.report import verdict_table
from weft_bench.programs import Programs
from weft_bench.record import METRICS


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


def large(figure, **median_of_system):
    """Records of 1 MiB, in one buffer."""
    question = dataclasses.replace(BANDWIDTH, sizes=(1 << 20,))
    series = {
        "channel": {"host": "a machine, cores 180 ns apart"},
        "near": {"host": "a machine, cores 99 ns apart"},
        "entry": {"model": "messaging"},
        "ucx": {"system": "ucx", "model": "machine", "path": "tag, cma read, one buffer"},
        "openmpi": {"system": "openmpi", "model": "mpi"},
        "mpich": {"system": "mpich", "model": "mpi"},
    }
    return [
        figure(question, median, **{"path": "one buffer", **series[name]})
        for name, median in median_of_system.items()
    ]


@pytest.mark.parametrize(
    ("medians", "reference", "factor", "met"),
    [
        ({"channel": 17.9, "ucx": 10.0, "openmpi": 9.0, "mpich": 8.0}, "ucx", 1.8, False),
        ({"channel": 18.1, "ucx": 9.0, "openmpi": 8.0, "mpich": 10.0}, "mpich", 1.8, True),
        ({"near": 14.1, "openmpi": 10.0}, "openmpi", 1.4, True),
        ({"near": 13.9, "openmpi": 10.0}, "openmpi", 1.4, False),
    ],
)
def test_a_large_message_is_to_beat_the_best_reference_by_more_where_cores_are_far(
    figure, medians, reference, factor, met
):
    verdict = verdict_of("C++ channel, 1 MiB", large(figure, **medians))
    assert verdict.reference.system == reference
    assert verdict.factor == factor
    assert verdict.met is met
    assert verdict_of("C++ channel, 1 MiB, distinct buffers", large(figure, **medians)).met is None


def test_distinct_buffers_are_judged_by_themselves(figure):
    question = dataclasses.replace(DISTINCT_BANDWIDTH, sizes=(4 << 20,))
    records = [
        figure(BANDWIDTH, 1.0, path="one buffer"),
        figure(BANDWIDTH, 9.0, system="openmpi", model="mpi", path="one buffer"),
        figure(question, 13.5, path="distinct buffers"),
        figure(question, 10.0, system="openmpi", model="mpi", path="distinct buffers"),
    ]
    assert verdict_of("C++ channel, 4 MiB", records).met is False
    assert verdict_of("C++ channel, 4 MiB, distinct buffers", records).met is True


@pytest.mark.parametrize(("median", "met"), [(4.9, False), (5.1, True)])
def test_values_are_judged_beside_channels_of_their_language(figure, median, met):
    records = [
        *large(figure, channel=10.0, entry=median),
        figure(dataclasses.replace(BANDWIDTH, sizes=(1 << 20,)), 90.0, language="python", path="one buffer"),
    ]
    assert verdict_of("C++ by value, 1 MiB", records).met is met


@pytest.mark.parametrize(("median_us", "met"), [(9_999.0, True), (10_001.0, False)])
def test_a_message_to_a_busy_pe_is_to_be_there_in_time(figure, median_us, met):
    text = "16 MiB to a PE that computes, until it is there"
    assert verdict_of(text, [figure(BUSY, median_us)]).met is met


@pytest.mark.parametrize(("median", "met"), [(9.9, True), (10.1, False)])
@pytest.mark.parametrize(
    ("name", "path", "way"), [("by value", "", "array"), ("vector",) * 3, ("nocopy",) * 3]
)
def test_large_arguments_are_to_be_as_fast_as_those_of_charm(figure, median, met, name, path, way):
    question = dataclasses.replace(LARGE_LATENCY, sizes=(1 << 20,))
    ways = {"array": 99.0, "vector": 99.0, "nocopy": 99.0, way: 10.0}
    records = [
        figure(question, median, model="messaging", path=path),
        *(
            figure(question, us, system="charm++", model="messaging", path=other)
            for other, us in ways.items()
        ),
    ]
    verdict = verdict_of(f"C++ {name}, 1 MiB one way", records)
    assert verdict.reference.path == way
    assert verdict.met is met


@pytest.mark.parametrize(("median", "met"), [(6.9, True), (7.1, False)])
def test_a_reduction_is_to_take_seven_tenths_of_that_of_charm(figure, median, met):
    records = [
        figure(REDUCTION, median, model="messaging", path="elements"),
        figure(REDUCTION, 10.0, system="charm++", model="messaging", path="array"),
    ]
    text = "C++ broadcast to 100,000 elements and reduction"
    assert verdict_of(text, records).met is met
    assert verdict_of(text, records[:1]).met is None


def test_what_is_beside_one_system_needs_it_and_weft_alone():
    goals = goals_beside("charm++")
    asked = narrowed(questions(Programs()), goals)
    assert [(question, [system.series.label for system in systems]) for question, systems in asked] == [
        (
            LARGE_LATENCY,
            [
                *("weft entry method, C++" + path for path in ("", ", vector", ", nocopy")),
                *("charm++, " + way for way in ("array", "vector", "nocopy")),
            ],
        ),
        (REDUCTION, ["weft entry method, C++, elements", "charm++, array"]),
    ]
    assert len(goals) == 3 * len(LARGE_LATENCY.sizes) + 1
    assert not goals_beside("nobody")


def test_the_best_reference_is_of_raw_ucx_and_of_every_mpi():
    assert {BEST.system, *(other.system for other in BEST.others)} == {
        "ucx",
        "openmpi",
        "mpich",
        "mpi4py-openmpi",
    }


def single_sizes(question):
    return [dataclasses.replace(question, sizes=(size,)) for size in question.sizes]


GPU_GOALS = gpu_goals()
GPU_LATENCY = GPU_GOALS[0].question
ALL = [(questions, GOALS), (gpu_questions, GPU_GOALS)]


@pytest.mark.parametrize(("make_questions", "goals"), ALL, ids=["host", "cuda"])
def test_every_goal_is_asked_for(make_questions, goals):
    asked = {
        (
            single,
            system.series.model,
            system.series.language,
            ", ".join(filter(None, (system.series.path, question.placement))),
        )
        for question, systems in make_questions(Programs())
        for single in single_sizes(question)
        for system in systems
        if system.series.system == "weft"
    }
    for goal in goals:
        for path in goal.paths:
            assert (goal.question, goal.model, goal.language, path) in asked


def test_the_path_counts_that_a_program_takes_by_default(figure):
    fields = {"model": "messaging", "memory": "cuda"}
    records = [
        figure(GPU_LATENCY, 13.0, path="tagged, GPU pair", **fields),
        figure(GPU_LATENCY, 12.0, path="active, GPU pair", **fields),
        figure(GPU_LATENCY, 1.0, path="tagged, same GPU", **fields),
        figure(GPU_LATENCY, 2.0, model="messaging", path="tagged, GPU pair"),
        figure(GPU_LATENCY, 10.0, system="ucx", model="machine", memory="cuda", path="tag, a, GPU pair"),
    ]
    (verdict,) = [v for v in judge(records, GPU_GOALS) if v.goal.text == "C++ entry method, 8 B one way"]
    assert verdict.ratio == pytest.approx(1.3)
    assert verdict.met is True


@pytest.mark.parametrize(("make_questions", "goals"), ALL, ids=["host", "cuda"])
def test_every_reference_is_asked_for(make_questions, goals):
    asked = {
        (single, system.series.system, system.series.model)
        for question, systems in make_questions(Programs())
        for single in single_sizes(question)
        for system in systems
    }
    for goal in goals:
        if goal.reference is not None:
            for reference in (goal.reference, *goal.reference.others):
                assert (goal.question, reference.system, reference.model) in asked


def test_only_who_is_in_a_goal_is_asked_on_gpus():
    for question, systems in gpu_questions(Programs()):
        labels = [system.series.label for system in systems]
        assert not [label for label in labels if "staged" in label or label.startswith("ucx, am")]
        assert len(labels) == (5 if question.bench == "latency" else 4)


def test_in_emulated_memory_there_are_the_same_questions():
    assert [
        (question.bench, question.sizes, question.memory)
        for question, _ in gpu_questions(Programs(), "emulated")
    ] == [
        ("latency", (8,), "emulated"),
        ("bandwidth", (4 << 20,), "emulated"),
    ]


def gpu_verdict(text, records):
    return next(verdict for verdict in judge_gpu(records) if verdict.goal.text == text)


@pytest.mark.parametrize(
    ("bench", "language", "staged", "met"),
    [
        ("latency", "cpp", 101.0, True),
        ("latency", "cpp", 99.0, False),
        ("latency", "python", 169.0, False),
        ("latency", "python", 171.0, True),
        ("bandwidth", "cpp", 0.99, True),
        ("bandwidth", "cpp", 1.01, False),
        ("bandwidth", "python", 0.58, True),
        ("bandwidth", "python", 0.59, False),
    ],
)
def test_staging_is_to_cost_so_many_times_as_much_at_some_size(make_record, bench, language, staged, met):
    def figure(size, way, median, **changes):
        unit = {"latency": "us", "bandwidth": "GB/s"}[bench]
        fields = {"memory": "cuda", "language": language, "path": f"{way}, GPU pair", **changes}
        spread = {"min": median, "median": median, "max": median}
        return make_record(
            bench=bench, size_bytes=size, metric=METRICS_OF[bench], unit=unit, **spread, **fields
        )

    records = [
        figure(64, "through UCX", 10.0),
        figure(64, "staged", 11.0),
        figure(4096, "through UCX", 10.0),
        figure(4096, "staged", staged),
        figure(4096, "staged", 10.0, path="staged, same GPU"),
        figure(64, "tagged", 1e-6 if bench == "latency" else 1e6, model="messaging"),
    ]
    text = f"{ {'cpp': 'C++', 'python': 'Python'}[language] } channel over host staging, {bench}"
    verdict = gpu_verdict(text, records)
    assert verdict.measured.size_bytes == 4096
    assert verdict.met is met


METRICS_OF = {"latency": "latency_us", "bandwidth": "bandwidth_GBps"}


@pytest.fixture
def jacobi3d_record(make_record):
    def make(path, median, pes=2):
        spread = {"min": median, "median": median, "max": median}
        return make_record(
            bench="jacobi3d", memory="cuda", metric="time_s", unit="s", path=path, pes=pes, **spread
        )

    return make


@pytest.mark.parametrize(("staged", "met"), [(0.011, True), (0.009, False)])
def test_jacobi3d_is_to_spend_a_tenth_on_communication(jacobi3d_record, staged, met):
    text = "C++ Jacobi3D over host staging, communication"
    records = [
        jacobi3d_record("communication, direct, strong, 9x9x9 points, ODF 1", 0.001),
        jacobi3d_record("communication, staged, strong, 9x9x9 points, ODF 1", staged),
        jacobi3d_record("communication, staged, strong, 9x9x9 points, ODF 2", 1.0),
        jacobi3d_record("communication, direct, strong, 9x9x9 points, ODF 1", 1e-6, pes=4),
        jacobi3d_record("overall, direct, strong, 9x9x9 points, ODF 1", 1e-6),
    ]
    verdict = gpu_verdict(text, records)
    assert verdict.ratio == pytest.approx(0.001 / staged)
    assert verdict.met is met
    assert gpu_verdict(text, records[:1]).met is None


@pytest.mark.parametrize(("four", "met"), [(1.05, True), (1.06, False)])
def test_weak_scaling_is_judged_at_the_better_of_two_factors(jacobi3d_record, four, met):
    records = [
        jacobi3d_record("overall, direct, weak, 9x9x9 points, ODF 1", 1.0, pes=1),
        jacobi3d_record("overall, direct, weak, 18x18x9 points, ODF 1", 2.0, pes=4),
        jacobi3d_record("overall, direct, weak, 9x9x9 points, ODF 2", 1.0, pes=1),
        jacobi3d_record("overall, direct, weak, 18x18x9 points, ODF 2", four, pes=4),
        jacobi3d_record("overall, direct, weak, 9x9x9 points, ODF 4", 9.0, pes=1),
        jacobi3d_record("overall, direct, weak, 18x18x9 points, ODF 4", 1.0, pes=4),
    ]
    verdict = gpu_verdict("C++ Jacobi3D weak scaling, time on 4 over 1", records)
    assert verdict.ratio == pytest.approx(four)
    assert verdict.met is met


def test_what_is_compared_was_in_one_file(figure):
    own = figure(LATENCY, 0.1)
    slow = figure(LATENCY, 0.2, system="ucx", model="machine", path="tag, a")
    fast = figure(LATENCY, 0.01, system="ucx", model="machine", path="tag, a")
    text = "C++ channel, 8 B one way"

    def met(*files):
        return next(verdict.met for verdict in judge_files(files) if verdict.goal.text == text)

    assert met([own], [slow]) is None
    assert met([own], [own, slow], [own, fast]) is True
    assert met([own, fast], [own, slow]) is False
    assert met() is None


def test_the_table_of_gpus_has_every_goal(make_record):
    verdicts = judge_gpu([])
    assert verdict_table(verdicts).row_count == len(GPU_GOALS) + len(comparisons())
    assert all(verdict.met is None for verdict in verdicts)


def test_the_table_has_a_row_for_every_goal():
    assert verdict_table(judge([])).row_count == len(GOALS)
    assert all(isinstance(goal, Goal) for goal in GOALS)
