"""Collectives that the launcher serves."""

from __future__ import annotations

import struct

import pytest

from weft.launch.frames import Frame, FrameDecoder, FrameType, ProtocolError
from weft.launch.rendezvous import Rendezvous

BARRIER = Frame(FrameType.BARRIER)


def exchange(payload: bytes) -> Frame:
    return Frame(FrameType.EXCHANGE, payload)


def decoded(answer: bytes | None) -> Frame:
    assert answer is not None
    (frame,) = FrameDecoder().feed(answer)
    return frame


def test_an_exchange_is_answered_when_the_last_pe_has_entered() -> None:
    rendezvous = Rendezvous(3)
    assert rendezvous.enter(2, exchange(b"two")) is None
    assert rendezvous.enter(0, exchange(b"")) is None
    answer = decoded(rendezvous.enter(1, exchange(b"1")))
    assert answer == Frame(FrameType.EXCHANGED, struct.pack("<3Q", 0, 1, 3) + b"1two")


def test_collectives_follow_one_another() -> None:
    rendezvous = Rendezvous(2)
    for frame, answer_type in [(BARRIER, FrameType.BARRIER_DONE), (exchange(b"x"), FrameType.EXCHANGED)] * 2:
        assert rendezvous.enter(1, frame) is None
        assert decoded(rendezvous.enter(0, frame)).type is answer_type


def test_one_pe_waits_for_nobody() -> None:
    assert decoded(Rendezvous(1).enter(0, BARRIER)).type is FrameType.BARRIER_DONE


def test_different_collectives_are_an_error() -> None:
    rendezvous = Rendezvous(3)
    rendezvous.enter(1, BARRIER)
    with pytest.raises(ProtocolError, match="PE 2 entered an exchange while PE 1 waits in a barrier"):
        rendezvous.enter(2, exchange(b""))


def test_entering_twice_is_an_error() -> None:
    rendezvous = Rendezvous(2)
    rendezvous.enter(1, BARRIER)
    with pytest.raises(ProtocolError, match="PE 1 entered a barrier twice"):
        rendezvous.enter(1, BARRIER)


def test_waiting_for_a_pe_that_has_finished_is_an_error() -> None:
    problem = "PE 1 waits in a barrier that PE 0, which has finished, will never enter"
    before = Rendezvous(2)
    before.finish(0)
    with pytest.raises(ProtocolError, match=problem):
        before.enter(1, BARRIER)
    after = Rendezvous(2)
    after.enter(1, BARRIER)
    with pytest.raises(ProtocolError, match=problem):
        after.finish(0)


def test_a_pe_may_be_in_the_next_job_while_another_one_still_ends_the_first() -> None:
    rendezvous = Rendezvous(2)
    rendezvous.finish(1)
    rendezvous.join_next_job(1)
    assert rendezvous.enter(1, exchange(b"1")) is None
    rendezvous.finish(0)
    rendezvous.join_next_job(0)
    assert decoded(rendezvous.enter(0, exchange(b"0"))).payload.endswith(b"01")


def test_collectives_of_different_jobs_are_an_error() -> None:
    rendezvous = Rendezvous(2)
    rendezvous.finish(1)
    rendezvous.join_next_job(1)
    rendezvous.enter(1, BARRIER)
    with pytest.raises(ProtocolError, match=r"PE 0 entered a barrier of job 1 .* while PE 1 waits in job 2"):
        rendezvous.enter(0, BARRIER)


@pytest.mark.parametrize("leaves_first", [True, False])
def test_waiting_in_a_job_for_a_pe_that_has_ended_is_an_error(leaves_first: bool) -> None:
    rendezvous = Rendezvous(2)
    for pe in range(2):
        rendezvous.finish(pe)
    if leaves_first:
        rendezvous.leave(0)
    rendezvous.join_next_job(1)
    problem = "PE 1 is in job 2 of this launch, and PE 0 has ended after job 1"
    with pytest.raises(ProtocolError, match=problem):
        if leaves_first:
            rendezvous.enter(1, BARRIER)
        else:
            rendezvous.enter(1, BARRIER)
            rendezvous.leave(0)


def test_a_lost_pe_is_not_waited_for() -> None:
    rendezvous = Rendezvous(3)
    rendezvous.enter(0, exchange(b"a"))
    rendezvous.enter(1, exchange(b"bc"))
    answer = decoded(rendezvous.lose(2))
    assert answer == Frame(FrameType.EXCHANGED, struct.pack("<3Q", 1, 2, 0) + b"abc")
    assert rendezvous.enter(1, BARRIER) is None
    assert decoded(rendezvous.enter(0, BARRIER)).type is FrameType.BARRIER_DONE


def test_what_a_lost_pe_has_entered_does_not_count() -> None:
    rendezvous = Rendezvous(3)
    rendezvous.enter(2, BARRIER)
    assert rendezvous.lose(2) is None
    assert rendezvous.enter(0, exchange(b"")) is None
    assert decoded(rendezvous.enter(1, exchange(b""))).type is FrameType.EXCHANGED
