"""Launches end when their time is over or a signal comes, and what was taken stays."""

import math
import os
import signal

import pytest

from weft_bench.errors import BenchError
from weft_bench.launches import Launches, Stopped, Teller, what_was_taken
from weft_bench.progress import Lines
from weft_bench.record import read_records


class Clock:
    """Stands still until it is moved."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Log(Teller):
    def __init__(self):
        self.said = []

    def started(self, label):
        self.said.append(label)

    def ended(self, label, seconds, how):
        self.said.append((label, seconds, how))


def test_each_launch_is_told_with_its_seconds_and_how_it_ended():
    clock, log = Clock(), Log()
    launches = Launches(teller=log, clock=clock)

    def take(seconds):
        clock.now += seconds
        return seconds

    def fail():
        raise BenchError("it fell over")

    assert launches.run("a", lambda: take(2.0)) == 2.0
    with pytest.raises(BenchError):
        launches.run("b", fail)
    assert log.said == ["a", ("a", 2.0, ""), "b", ("b", 0.0, "failed")]


def test_parts_share_the_time_that_is_left():
    clock, ran = Clock(), []
    launches = Launches(limit_s=90.0, clock=clock)

    def take(seconds):
        clock.now += seconds
        ran.append(seconds)

    launches.begin_part(3)  # has 30 s
    launches.run("", lambda: take(29.0))
    launches.run("", lambda: take(21.0))  # begun before the end
    with pytest.raises(Stopped, match="the time is over"):
        launches.run("", lambda: take(1.0))
    launches.begin_part(2)  # has 20 of the 40 s that are left
    launches.run("", lambda: take(20.0))
    with pytest.raises(Stopped):
        launches.run("", lambda: take(1.0))
    launches.begin_part()
    launches.run("", lambda: take(100.0))
    assert ran == [29.0, 21.0, 20.0, 100.0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_launch_and_all_after_it(number):
    log, before = Log(), signal.getsignal(number)
    launches = Launches(math.inf, teller=log)
    with launches.ended_by_signals():
        with pytest.raises(Stopped, match=f"ended by {number.name}"):
            launches.run("a", lambda: os.kill(os.getpid(), number) or signal.pause())
        assert signal.getsignal(number) == before, "the next one does as ever"
        with pytest.raises(Stopped):
            launches.run("b", lambda: pytest.fail("launched after the end"))
    assert [said[2] for said in log.said if isinstance(said, tuple)] == ["interrupted"]
    assert launches.exit_status(0) == 128 + number


def test_a_signal_between_launches_disturbs_nothing_and_ends_the_next():
    launches = Launches()
    with launches.ended_by_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Stopped):
            launches.run("a", lambda: pytest.fail("launched after the end"))
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_status_is_the_benchs_own_without_a_signal():
    assert Launches().exit_status(1) == 1


def test_records_of_a_part_replace_one_another_behind_those_before(make_record, tmp_path):
    file = tmp_path / "folder" / "records.json"
    launches = Launches(file=file)

    def keep(*sizes):
        launches.keep(make_record(size_bytes=size) for size in sizes)
        return [record.size_bytes for record in read_records(file)]

    launches.begin_part(2)
    assert keep(1) == [1]
    assert keep(1, 2) == [1, 2]
    launches.begin_part()
    assert keep(3) == [1, 2, 3]
    assert keep(4) == [1, 2, 4]


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"a": 2, "b": 2}, "2 of 5 runs"),
        ({"a": 3, "b": 2, "c": 2}, "2 to 3 of 5 runs"),
        ({"a": 1, "b": 0, "c": 0}, "1 of 5 runs, none of: b; c"),
        ({"a": 0, "b": 0}, "0 of 5 runs"),
        ({}, "0 of 5 runs"),
    ],
)
def test_what_was_taken_is_told(counts, text):
    assert what_was_taken(counts, 5) == text


def test_lines_count_launches(capsys):
    lines = Lines()
    lines.expect(2)
    lines.ended("ucx", 1.23, "")
    lines.expect(1)
    lines.ended("weft channel, C++", 0.5, "failed")
    assert capsys.readouterr().err == "1/2 ucx: 1.2 s\n2/3 weft channel, C++: 0.5 s, failed\n"
