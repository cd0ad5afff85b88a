"""Judges deaths and aborts of PEs: which end the job, and after which it begins again or goes on.

A PE may abort because another one has died, and the launcher may see the abort first. So both are judged
together, in `_settle`, when all that can be reaped and read has been.
"""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Sequence

from weft.launch.command import UsageError
from weft.launch.losses.recovery import Recovery
from weft.launch.losses.survival import Survival
from weft.launch.processes import Pe, Starter, exit_code_of
from weft.launch.service import BootstrapService


class DeathJudge(ABC):
    """The part of `Job` that judges; the rest sees the deaths, and ends the job."""

    _service: BootstrapService
    _starter: Starter

    def __init__(self, recovery: Recovery | None, survival: Survival | None = None) -> None:
        self._recovery = recovery
        self._survival = survival
        self._pes: list[Pe] = []
        self._reaped: list[Pe] = []  # whose exit has not been judged yet
        self._aborts: list[tuple[Pe, int, str]] = []  # not acted upon yet
        self._hangups: dict[
            int, float
        ] = {}  # by PE whose connection closed: the time at which it counts as dead
        self._passed_signal: signal.Signals | None = None
        self._ending = False
        self._killed = False
        self._exit_code = 0

    @abstractmethod
    def _reap(self) -> None:
        """Appends the PEs that have died to `_reaped`, when their last frames have been read."""

    @abstractmethod
    def _note_exit(self, pe: Pe, status: int) -> None:
        """As `_reap`, for one PE that has ended so."""

    @abstractmethod
    def _begin_anew(self, lost: Sequence[Pe], leaving: Sequence[Pe], num_pes: int, why: str) -> None:
        """Has the job begin again with so many PEs."""

    @abstractmethod
    def _has_left(self, pe: Pe) -> bool:
        """Whether a PE that has ended is in the job no more, because the job goes on without it."""

    @abstractmethod
    def _end(self, reason: str, exit_code: int, *, terminates: bool = True) -> None:
        """Ends the job, unless it is ending."""

    @abstractmethod
    def _end_interrupted(self, number: signal.Signals) -> None:
        """Ends the job after a signal that all PEs have."""

    @abstractmethod
    def _say(self, sentence: str) -> None:
        """Prints a sentence of the launcher's."""

    @abstractmethod
    def _write(self, text: str) -> None:
        """Prints a text of a PE's."""

    # --- told by other hosts, see `hosts.remote_host.Owner`

    def exited_elsewhere(self, pe: Pe, status: int) -> None:
        """A PE of another host has ended."""
        self._note_exit(pe, status)

    def host_lost(self, pes: Sequence[Pe]) -> None:
        """A host is lost, and these PEs with it."""
        for pe in pes:
            self._note_exit(pe, -signal.SIGKILL)

    def cannot_start(self, sentence: str, pes: Sequence[Pe]) -> None:
        """A host cannot be reached, or these PEs not be started there."""
        if self._recovery is None or self._recovery.incarnation == 0 or self._ending:
            for pe in pes:
                pe.exit_status = -signal.SIGKILL
            self._end(sentence, 2)
            return
        self._say(sentence)
        for pe in pes:  # another host may do
            self._note_exit(pe, -signal.SIGKILL)

    def said_elsewhere(self, sentence: str) -> None:
        """A host has something to say to the user."""
        self._say(sentence)

    # --- judging

    def _settle(self) -> None:
        """Judges deaths and aborts together: if a death made other PEs abort, the death is the reason."""
        if not self._reaped and not self._aborts:
            return
        self._reap()
        if (
            self._recovery is not None
            and not self._ending
            and self._recovery.holds_aborts(bool(self._reaped), self._is_one_dying)
        ):
            return
        reaped, self._reaped = self._reaped, []
        aborts, self._aborts = self._aborts, []
        aborters = {pe.number for pe, _, _ in aborts}
        if self._recovery is not None:
            aborters = set()  # the loss of another PE was the reason
        killed = [pe for pe in reaped if exit_status_of(pe) < 0 and pe.number not in aborters]
        if killed and self._begins_again(killed):
            # The losses were their reason, also of those that have come meanwhile.
            aborts, self._aborts = [], []
        else:
            for pe in killed:
                if not self._goes_on_without(pe):
                    self._judge_kill(pe, exit_status_of(pe))
        for pe, exit_code, message in aborts:
            self._abort(pe, exit_code, message)
        for pe in reaped:
            if pe not in killed:
                self._judge_exit(pe, exit_status_of(pe))
        if self._survival is not None:
            self._settle()  # what has come meanwhile

    def _is_one_dying(self) -> bool:
        return any(pe.is_dying for pe in self._pes)

    def _begins_again(self, lost: list[Pe]) -> bool:
        """Starts processes in place of the lost ones and has the job begin again, if it may."""
        if self._recovery is None or self._passed_signal is not None:
            return False
        for connection in list(self._service.connections.values()):
            self._service.read(connection)  # that a PE has finished, or that others protect for a plan
        lost = [pe for pe in lost if not self._has_left(pe)]
        if not lost:
            return True
        if self._ending:
            return False
        finished = [pe for pe in self._pes if pe.finished_code is not None]
        if finished and all(pe in finished for pe in lost):
            return False
        if not self._service.can_begin_again:
            obstacle: str | None = (
                "MPI without --ranks, weft.pgas.run and a second weft.run cannot begin again"
            )
        elif finished:
            obstacle = f"{finished[0].name} had finished the job"
        elif self._recovery.shrinks and len(lost) == len(self._pes):
            obstacle = "no PE is left"
        else:
            obstacle = self._recovery.obstacle([pe.incarnation for pe in lost])
        sentence = ", ".join(f"{pe.name} {pe.describe_end()}" for pe in lost)
        if obstacle is not None:
            self._end(f"{sentence}; {obstacle}", exit_code_of(exit_status_of(lost[0])))
            return True
        for pe in lost:
            pe.send_signal(signal.SIGKILL)  # the child of a wrapper that was lost
        num_pes = len(self._pes) - (len(lost) if self._recovery.shrinks else 0)
        pes = f" with {num_pes} PE{'' if num_pes == 1 else 's'}" if self._recovery.shrinks else ""
        # Before processes are started: programs that watch a job rely on it.
        self._say(f"{sentence}; the job begins again{pes} (recovery {self._recovery.incarnation + 1})")
        try:
            self._begin_anew(lost, [], num_pes, sentence)
        except UsageError as error:
            self._end(
                f"no process can take the place of PE {lost[0].number}: {error}",
                exit_code_of(exit_status_of(lost[0])),
            )
            return True
        return True

    def _goes_on_without(self, lost: Pe) -> bool:
        """Has the other PEs go on after a loss that they handle themselves, or ends the job in words."""
        if self._survival is None or self._passed_signal is not None:
            return False
        for connection in list(self._service.connections.values()):
            self._service.read(connection)  # that a PE has finished may still be unread
        if self._ending or lost.finished_code is not None:
            return False
        gone = self._survival.lost | {lost.number}
        # Not PEs that were lost with it: they need not have started.
        living = [
            pe.number for pe in self._pes if pe.running and pe.number not in gone and pe.finished_code is None
        ]
        status = exit_status_of(lost)
        sentence = f"{lost.name} {lost.describe_end()}"
        if (obstacle := self._survival.obstacle({lost.number}, living)) is not None:
            self._end(f"{sentence}; {obstacle}", exit_code_of(status))
            return True
        lost.send_signal(signal.SIGKILL)  # the child of a wrapper that was lost
        self._survival.lost.add(lost.number)
        self._hangups.pop(lost.number, None)
        self._say(f"{sentence}; the job goes on without it")
        self._service.lose(lost.number, sentence)
        return True

    def _judge_kill(self, pe: Pe, status: int) -> None:
        if self._ending and (self._killed or -status in (signal.SIGTERM, self._passed_signal)):
            return
        sentence = f"{pe.name} {pe.describe_end()}"
        if pe.finished_code is not None:
            self._exit_code = self._exit_code or exit_code_of(status)
            self._say(f"{sentence} after it had finished")
            self._leaves_after_job(pe)
        elif self._passed_signal is not None and status == -self._passed_signal:
            self._end_interrupted(self._passed_signal)
        elif not self._ending:
            self._end(sentence, exit_code_of(status))
        else:
            # The launcher did not send this signal: this death may have caused the failure reported before.
            self._say(sentence)

    def _leaves_after_job(self, pe: Pe) -> None:
        """Ends the launch if other PEs wait in the next job for a PE that has ended after one."""
        # The connection may stay open: a child of the PE may hold it.
        if pe.connected_pid in (None, pe.pid):
            self._service.expect_no_next_job(pe)

    def _judge_exit(self, pe: Pe, status: int) -> None:
        """Decides whether the exit of a process is a death that ends the job."""
        if self._ending:
            return
        if pe.finished_code is not None:
            self._exit_code = self._exit_code or status
            self._leaves_after_job(pe)
        elif status != 0:
            self._end(f"{pe.name} {pe.describe_end()}", exit_code_of(status))
        elif (connection := self._service.connections.get(pe.number)) is not None:
            if connection.broken_off is not None:
                self._end(f"{pe.name}: {connection.broken_off}", 1)
            # A PE that is missing matters only if another one still runs.
            elif any(other.running and other.finished_code is None for other in self._pes):
                self._end(f"{pe.name} exited with code 0 before the job was finished", 1)
        else:
            self._check_all_joined()

    def _check_all_joined(self) -> None:
        """Ends the job if a PE has joined it and another one has exited without joining."""
        joined = [n for n in self._service.connections if self._pes[n].finished_code is None]
        gone = [pe for pe in self._pes if not pe.running and pe.number not in self._service.connections]
        if joined and gone:
            self._end(
                f"{gone[0].name} exited with code 0 without joining the job that PE {joined[0]} is in", 1
            )

    def _abort(self, pe: Pe, exit_code: int, message: str) -> None:
        if self._ending:
            return
        passed = self._passed_signal
        # Each PE says that the signal has ended it, and the launcher says it for all.
        if message and (passed is None or f"interrupted by signal {int(passed)} " not in message):
            self._write(message if message.endswith("\n") else message + "\n")
        if passed is not None:
            self._end_interrupted(passed)
        self._end(f"{pe.name} aborted with exit code {exit_code}", exit_code)


def exit_status_of(pe: Pe) -> int:
    """The exit status of a PE that has been reaped."""
    assert pe.exit_status is not None
    return pe.exit_status
