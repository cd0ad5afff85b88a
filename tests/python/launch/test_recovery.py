"""When a job begins again after losses, and when it has done so too often."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import socket
import struct
import subprocess
from collections.abc import Iterator

import pytest

from weft.launch.frames import HEADER, FrameType, encode
from weft.launch.job import Job
from weft.launch.losses import recovery as module
from weft.launch.losses.recovery import LEAVE_S, MOST_WITHOUT_PROGRESS, Recovery
from weft.launch.processes import Pe

from .test_service import OnePe


def lose(recovery: Recovery, started_in: int = 0) -> str | None:
    """A PE is lost, and the job begins again."""
    obstacle = recovery.obstacle([started_in])
    recovery.begin([0])
    recovery.left(0)
    recovery.all_joined()
    return obstacle


def test_a_job_that_protects_nothing_new_ends() -> None:
    recovery = Recovery()
    assert [lose(recovery) for _ in range(MOST_WITHOUT_PROGRESS)] == [None] * MOST_WITHOUT_PROGRESS
    assert "5 times without a weft.protect" in (lose(recovery) or "")


def test_a_job_that_protects_goes_on() -> None:
    recovery = Recovery()
    for number in range(1, 20):
        recovery.protected(number)
        assert lose(recovery) is None
    assert recovery.newest_protected == 19 and recovery.incarnation == 19
    recovery.protected(7)  # of an earlier incarnation
    assert recovery.newest_protected == 19


def test_losses_while_pes_come_back_count_once_unless_a_new_process_is_lost() -> None:
    recovery = Recovery()
    for _ in range(20):
        assert recovery.obstacle([0]) is None
        recovery.begin([1])
    for _ in range(MOST_WITHOUT_PROGRESS - 1):
        assert recovery.obstacle([recovery.incarnation]) is None
        recovery.begin([1])
    assert recovery.obstacle([recovery.incarnation]) is not None


def test_a_pe_that_does_not_leave_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    recovery = Recovery()
    recovery.begin([0, 2, 3])
    recovery.left(2)
    assert set(recovery.deadlines) == {now + LEAVE_S} and recovery.busy() == []
    now += LEAVE_S
    assert recovery.busy() == [0, 3]
    recovery.left(0)
    recovery.left(3)
    recovery.all_joined()
    assert recovery.busy() == [] and recovery.deadlines == []


def test_pes_that_read_their_states_have_no_limit_and_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    job = Job([["true"]] * 2, {}, recovery=(recovery := Recovery()))
    recovery.begin([0, 1])
    now += 20
    job.stopped(Pe(0, 1))
    job.stopped(Pe(1, 2))
    recovery.all_stopped()
    assert recovery.deadlines == [now + LEAVE_S] and not recovery.is_late()
    now += LEAVE_S
    assert recovery.is_late() and not recovery.is_late()
    assert recovery.busy() == [] and recovery.deadlines == []


def test_an_abort_waits_for_a_death(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    recovery = Recovery()
    dying = False
    held = functools.partial(recovery.holds_aborts, is_one_dying=lambda: dying)
    assert held(False) and held(False)
    now = recovery.deadlines[0]
    assert not held(False) and recovery.deadlines == []
    assert held(False) and not held(True) and recovery.deadlines == []
    # A process that was killed takes long to end.
    assert held(False)
    dying = True
    for _ in range(2):
        now = recovery.deadlines[0]
        assert held(False)
    now += module.MOST_HOLD_S
    assert not held(False) and recovery.deadlines == []


def test_a_process_that_is_killed_is_dying_until_it_is_reaped() -> None:
    process = subprocess.Popen(["sleep", "100"])
    pe = Pe(0, process.pid)
    assert not pe.is_dying
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert pe.is_dying
    process.wait()
    assert not pe.is_dying


class Restarted(OnePe):
    """A service of a job of one PE, or of a few, that begins again."""

    def __init__(self, num_pes: int = 1) -> None:
        self.recovery = Recovery()
        super().__init__(1, self.recovery, num_pes)

    def turn(self) -> None:
        self.handle(self.selector.select(1))

    def join(self, number: int) -> socket.socket:
        """The connection of a PE that is in the first incarnation."""
        pe = self.connect()
        self.turn()
        pe.sendall(hello(0, number))
        self.turn()
        assert received(pe)[0] == FrameType.WELCOME
        return pe


def hello(incarnation: int, pe: int = 0) -> bytes:
    return encode(FrameType.HELLO, struct.pack("<II", pe, incarnation))


def stopped(incarnation: int) -> bytes:
    return encode(FrameType.STOPPED, struct.pack("<I", incarnation))


def has_received(connection: socket.socket) -> bool:
    return bool(select.select([connection], [], [], 0)[0])


def received(connection: socket.socket) -> tuple[int, bytes]:
    """The type and the payload of one frame."""
    _, kind, size = HEADER.unpack(connection.recv(HEADER.size))
    return kind, connection.recv(size) if size else b""


@pytest.fixture
def restarted() -> Iterator[Restarted]:
    made = Restarted()
    yield made
    made.close()


def test_frames_of_the_incarnation_that_has_ended_are_dropped(restarted: Restarted) -> None:
    with restarted.connect() as pe:
        restarted.turn()
        pe.sendall(hello(0))
        restarted.turn()
        assert received(pe) == (FrameType.WELCOME, struct.pack("<IQ", 1, 0))
        assert restarted.service.can_begin_again
        restarted.service.begin_again([], [], 1, restarted.recovery.begin([0]), "why")
        assert received(pe) == (FrameType.BEGIN_AGAIN, struct.pack("<III", 1, 0, 1) + b"why")
        # All but the last were sent before the PE has read that.
        pe.sendall(encode(FrameType.BARRIER) + encode(FrameType.ABORT, bytes(4)) + hello(0) + hello(1))
        restarted.turn()
        assert received(pe) == (FrameType.WELCOME, struct.pack("<IQ", 1, 0))
        pe.sendall(encode(FrameType.BARRIER))
        restarted.turn()
        assert received(pe)[0] == FrameType.BARRIER_DONE


# Their process numbers and addresses stay, so a PE that still runs would copy into the new program.
def test_pes_begin_new_programs_when_all_have_stopped() -> None:
    job = Restarted(3)
    first, second, leaver = (job.join(number) for number in range(3))
    all_stopped = (FrameType.ALL_STOPPED, struct.pack("<I", 1))
    with contextlib.closing(job), first, second, leaver:
        job.service.begin_again([], [job.pes[2]], 2, job.recovery.begin([0, 1]), "why")
        for pe in (first, second):
            assert received(pe)[0] == FrameType.BEGIN_AGAIN
            pe.sendall(stopped(1))
            job.turn()
            assert not has_received(first)
        assert job.events.have_stopped == [0, 1]
        leaver.close()
        job.turn()
        assert [received(first), received(second)] == [all_stopped, all_stopped]
        first.sendall(hello(1))
        job.turn()
        assert received(first)[0] == FrameType.WELCOME
        assert not has_received(second)


def test_pes_that_have_stopped_before_a_further_loss_stop_again() -> None:
    job = Restarted(2)
    first, second = job.join(0), job.join(1)
    with contextlib.closing(job), first, second:
        for _ in range(2):
            job.service.begin_again([], [], 2, job.recovery.begin([0, 1]), "why")
            assert received(first)[0] == FrameType.BEGIN_AGAIN
            first.sendall(stopped(1))  # the second one has crossed the word of the further loss
            job.turn()
        second.sendall(stopped(2))
        job.turn()
        assert not has_received(first)
        first.sendall(stopped(2))
        job.turn()
        assert received(first) == (FrameType.ALL_STOPPED, struct.pack("<I", 2))
        assert job.events.have_stopped == [0, 1, 0]


def test_pes_are_answered_once_and_when_others_begin_again_in_place() -> None:
    job = Restarted(2)
    first, second = job.join(0), job.join(1)
    with contextlib.closing(job), first, second:
        job.service.begin_again([], [], 2, job.recovery.begin([0, 1]), "why")
        assert received(first)[0] == FrameType.BEGIN_AGAIN
        for _ in range(2):
            first.sendall(stopped(1))
            job.turn()
        assert job.events.have_stopped == [0] and not has_received(first)
        second.sendall(hello(1, 1))
        job.turn()
        assert has_received(first) and received(first)[0] == FrameType.ALL_STOPPED
        assert not has_received(first)


# For the others a clock runs. This one knows of a further loss when it has read its state.
def test_a_pe_that_begins_a_new_program_is_not_busy_until_it_says_hello() -> None:
    job = Restarted(2)
    first, second = job.join(0), job.join(1)
    with contextlib.closing(job), first, second:
        for incarnation in (1, 2, 3):
            job.service.begin_again([], [], 2, job.recovery.begin(job.service.busy), "why")
            if incarnation == 1:
                first.sendall(stopped(1))
                job.turn()
            assert job.service.busy == [1] and job.service.missing == [0, 1]
        first.sendall(hello(1))
        job.turn()
        assert job.service.busy == [0, 1] and job.service.missing == [0, 1]
        first.sendall(stopped(3) + hello(3))
        job.turn()
        assert job.service.busy == [0, 1] and job.service.missing == [1]


def test_a_new_process_of_before_a_further_loss_is_told_and_a_child_of_a_lost_one_refused(
    restarted: Restarted,
) -> None:
    restarted.recovery.begin([])
    restarted.recovery.begin([])
    restarted.pes[0] = Pe(0, 1, incarnation=1)
    with restarted.connect() as child, restarted.connect() as pe:
        restarted.turn()
        child.sendall(hello(0))
        restarted.turn()
        kind, why = received(child)
        assert kind == FrameType.END and b"a process of PE 0 that was lost" in why
        pe.sendall(hello(1))
        restarted.turn()
        kind, payload = received(pe)
        assert kind == FrameType.BEGIN_AGAIN and payload.startswith(struct.pack("<III", 2, 0, 1))
        pe.sendall(hello(2))
        restarted.turn()
        assert received(pe)[0] == FrameType.WELCOME
