"""Systems take turns; what is missing or fails is told and does not stop the others."""

import dataclasses

from weft_bench.errors import BenchError
from weft_bench.launches import Launches, Teller
from weft_bench.provenance import Provenance
from weft_bench.question import Question
from weft_bench.record import read_records
from weft_bench.schedule import ask
from weft_bench.system import Reading, Series

WHERE = Provenance(git="0123", host="a machine", date="2026-01-02T03:04:05Z")


@dataclasses.dataclass
class Fake:
    """Says `values` one after another, the same at every size; a None among them is a failure."""

    series: Series
    values: list
    log: list
    missing: str | None = None

    def absent(self, question):
        return self.missing

    def run(self, question):
        self.log.append(self.series.system)
        value = self.values.pop(0)
        if value is None:
            raise BenchError("it fell over")
        return [Reading(size, value, warmup=7) for size in question.sizes]


def fakes(log, **values):
    return [Fake(Series(name, "machine", "cpp"), list(said), log) for name, said in values.items()]


def test_systems_take_turns():
    log = []
    ask(Question("latency", (8,)), fakes(log, weft=[1, 2, 3], ucx=[4, 5, 6]), 3, WHERE)
    assert log == ["weft", "ucx"] * 3


def test_a_record_is_the_median_and_the_extremes_over_all_runs():
    outcome = ask(Question("latency", (8, 64)), fakes([], weft=[5.0, 1.0, 4.0, 2.0, 9.0]), 5, WHERE)
    assert [record.size_bytes for record in outcome.records] == [8, 64]
    for record in outcome.records:
        assert (record.min, record.median, record.max, record.runs) == (1.0, 4.0, 9.0, 5)
        assert (record.metric, record.unit, record.warmup) == ("latency_us", "us", 7)
        assert (record.git, record.host, record.date) == ("0123", "a machine", "2026-01-02T03:04:05Z")


def test_an_absent_system_is_listed_and_never_run():
    log = []
    systems = fakes(log, weft=[1], ucx=[2])
    systems[1].missing = "pip install it"
    outcome = ask(Question("rate", (8,)), systems, 1, WHERE)
    assert outcome.absent == {"ucx": "pip install it"}
    assert log == ["weft"]
    assert [record.system for record in outcome.records] == ["weft"]


def test_a_system_that_fails_leaves_no_record_and_the_others_go_on():
    log = []
    outcome = ask(Question("latency", (8,)), fakes(log, weft=[1, None, 3], ucx=[4, 5, 6]), 3, WHERE)
    assert outcome.failed == {"weft machine, C++": "it fell over"}
    assert log == ["weft", "ucx", "weft", "ucx", "ucx"]
    assert [(record.system, record.runs) for record in outcome.records] == [("ucx", 3)]


def ask_with_distances(distances, systems, runs, launches=None):
    left = [distance for distance in distances for _ in ("before", "after")]
    return ask(Question("latency", (8,)), systems, runs, WHERE, launches, distance=lambda: left.pop(0))


def test_runs_at_another_distance_are_made_again_and_do_not_count():
    log = []
    systems = fakes(log, weft=[1.0, 90.0, 3.0], ucx=[4.0, 5.0])
    outcome = ask_with_distances([40, 40, 180, 40, 40], systems, 2)
    assert log == ["weft", "ucx", "weft", "ucx", "weft"]
    assert [(record.min, record.max, record.runs) for record in outcome.records] == [
        (1.0, 3.0, 2),
        (4.0, 5.0, 2),
    ]
    assert {record.host for record in outcome.records} == {"a machine, cores 40 ns apart"}
    assert outcome.unsteady == 0


def test_launches_that_are_made_again_are_expected():
    class Counting(Teller):
        launches = 0

        def expect(self, launches):
            self.launches += launches

    teller = Counting()
    systems = fakes([], weft=[1.0, 90.0, 3.0], ucx=[4.0, 5.0])
    ask_with_distances([40, 40, 180, 40, 40], systems, 2, Launches(teller=teller))
    assert teller.launches == 1  # of "weft"; who asks has told of the others


def test_the_distance_that_most_runs_saw_counts():
    systems = fakes([], weft=[1.0, 90.0, 91.0], ucx=[92.0, 93.0])
    outcome = ask_with_distances([40, 180, 180, 180, 180], systems, 2)
    assert [(record.min, record.max) for record in outcome.records] == [(90.0, 91.0), (92.0, 93.0)]


def test_runs_that_are_lacking_are_told():
    systems = fakes([], weft=[1.0, 1.0], ucx=[2.0] * 8)
    outcome = ask_with_distances([40, 180, 40, *[180] * 7], systems, 2)
    assert [record.runs for record in outcome.records] == [2, 8]
    assert outcome.unsteady == 2


class Clock:
    """Says how often it was asked, in seconds; a launch asks twice, when it begins and when it ends."""

    def __init__(self):
        self.now = -1.0

    def __call__(self):
        self.now += 1
        return self.now


def test_a_limit_leaves_the_runs_that_there_are():
    log = []
    systems = fakes(log, weft=[1.0, 3.0], ucx=[4.0, 5.0], nccl=[7.0])
    launches = Launches(limit_s=11, clock=Clock())
    launches.begin_part()
    outcome = ask(Question("latency", (8,)), systems, 5, WHERE, launches)
    assert log == ["weft", "ucx", "nccl", "weft", "ucx"]
    assert [(r.system, r.runs, r.max) for r in outcome.records] == [
        ("weft", 2, 3.0),
        ("ucx", 2, 5.0),
        ("nccl", 1, 7.0),
    ]
    assert outcome.stopped == ["the time is over: 1 to 2 of 5 runs"]
    assert outcome.unsteady == 0


def test_who_was_never_asked_is_named():
    launches = Launches(limit_s=3, clock=Clock())
    launches.begin_part()
    outcome = ask(Question("latency", (8,)), fakes([], weft=[1.0], ucx=[], nccl=[]), 5, WHERE, launches)
    assert [record.system for record in outcome.records] == ["weft"]
    assert outcome.stopped == ["the time is over: 1 of 5 runs, none of: ucx; nccl"]


def test_records_are_kept_after_each_turn(tmp_path):
    file = tmp_path / "records.json"
    seen = []

    class Looking(Fake):
        def run(self, question):
            seen.append([r.runs for r in read_records(file)] if file.exists() else None)
            return super().run(question)

    systems = [Looking(Series(name, "machine", "cpp"), [1.0] * 3, []) for name in ("weft", "ucx")]
    outcome = ask(Question("latency", (8,)), systems, 3, WHERE, Launches(file=file))
    assert seen == [None, None, [1, 1], [1, 1], [2, 2], [2, 2]]
    assert list(read_records(file)) == outcome.records
    assert [path.name for path in tmp_path.iterdir()] == ["records.json"]
