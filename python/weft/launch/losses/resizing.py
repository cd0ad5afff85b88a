"""The part of `Job` that begins the job again: in the place of lost PEs, or with another number of PEs."""

from __future__ import annotations

import os
import signal
import time
from abc import abstractmethod
from collections.abc import Sequence

from weft.launch.command import MAX_PES, UsageError
from weft.launch.losses.deaths import DeathJudge, exit_status_of
from weft.launch.losses.recovery import LEAVE_S, Recovery
from weft.launch.losses.resizes import Resizes, new_places
from weft.launch.losses.survival import Survival
from weft.launch.output import Output
from weft.launch.processes import Pe
from weft.launch.time_limit import TimeLimit

_CANNOT_BEGIN_AGAIN = (
    "MPI without --ranks, weft.pgas.run and a second weft.run cannot begin again with another number of PEs"
)
_SEVERAL_PROGRAMS = "the job has several programs, and the numbers of its PEs say which one they run"
_NO_OPTION = "the job was not started with --on-loss restart or --on-loss shrink"


class Resizer(DeathJudge):
    """Begins incarnations. What a job was asked for is in `Resizes`."""

    _output: Output
    _time_limit: TimeLimit | None
    _num_pes: int
    # Whether PEs get other cores in a job with another number of PEs.
    _has_new_shares = True

    def __init__(
        self, recovery: Recovery | None, survival: Survival | None = None, most_pes: int = MAX_PES
    ) -> None:
        super().__init__(recovery, survival)
        self._resizes = Resizes(most_pes)
        # With the time at which each is killed; None if it was.
        self._leavers: list[tuple[Pe, float | None]] = []

    @property
    def _all_pes(self) -> list[Pe]:
        """The PEs of the job, and those that leave it."""
        return [*self._pes, *(pe for pe, _ in self._leavers)]

    @abstractmethod
    def _make_room(self, num_pes: int) -> None:
        """Prepares the launcher for so many PEs.

        Raises:
            UsageError: it cannot have so many.
        """

    @abstractmethod
    def _bind(self) -> list[set[int]] | None:
        """The CPUs of each of `_num_pes` PEs; None if they are not bound."""

    # --- asked by the PEs and by `weft resize`

    def asked_for_resize(self, pe: Pe | None, num_pes: int) -> str | None:
        """Somebody asks for so many PEs, or a PE for a job without it (0). Returns why it is refused."""
        if self._recovery is None:
            return _NO_OPTION
        if self._ending or self._passed_signal is not None:
            return "the job ends"
        if not self._service.can_begin_again:
            return _CANNOT_BEGIN_AGAIN
        if pe is not None and num_pes == 0:
            self._drain(pe)
            return None
        if self._starter.has_several_programs:
            return _SEVERAL_PROGRAMS
        refusal = self._resizes.ask(num_pes, len(self._pes))
        if refusal is None:
            self._offer_plan()
        return refusal

    def _drain(self, pe: Pe) -> None:
        if self._resizes.is_draining(pe.number):
            return
        refusal = _SEVERAL_PROGRAMS if self._starter.has_several_programs else None
        if refusal is None:
            refusal = self._resizes.drain(pe.number, len(self._pes))
        if refusal is not None:
            self._say(f"{pe.name} got SIGTERM and cannot be drained: {refusal}")
            return
        self._say(f"{pe.name} got SIGTERM: it leaves at the next weft.protect that is complete")
        self._offer_plan()

    def cannot_resize(self, number: int, why: str) -> None:
        """What the program protects cannot be restored on the number of PEs of that plan."""
        if self._resizes.plan(number) is None:
            return
        self._say(f"the job keeps its {len(self._pes)} PEs: {why}")
        self._withdraw()

    def _withdraw(self) -> None:
        self._resizes.withdraw()
        self._service.tell_plan(0, 0, ())

    def _offer_plan(self) -> None:
        """Tells the PEs what they are to protect for, if all are there; else when they are."""
        if self._ending or not self._service.is_complete:
            return
        plan = self._resizes.new_plan(len(self._pes))
        if (
            plan is not None and not self._service.can_begin_again
        ):  # it was asked for before all PEs had joined
            self._say(f"the job keeps its {len(self._pes)} PEs: {_CANNOT_BEGIN_AGAIN}")
            self._resizes.withdraw()
        elif plan is not None:
            self._service.tell_plan(plan.number, plan.num_pes, plan.leaving)

    def _carry_out(self, number: int) -> None:
        """All PEs have protected a state for that plan."""
        plan = self._resizes.plan(number)
        if plan is None or self._ending:
            return
        if self._passed_signal is not None or any(pe.finished_code is not None for pe in self._pes):
            self._withdraw()  # for which they wait
            return
        sentence = plan.sentence(len(self._pes))
        leaving = [self._pes[pe] for pe in plan.leaving]
        self._say(sentence)  # before processes are started, as after a loss
        try:
            self._begin_anew([], leaving, plan.num_pes, sentence)
        except UsageError as error:
            self._say(f"the job keeps its {len(self._pes)} PEs: {error}")
            self._withdraw()
            return
        self._resizes.carried_out()
        self._reaped = [pe for pe in self._reaped if not self._has_left(pe)]

    # --- a further incarnation

    def _begin_anew(self, lost: Sequence[Pe], leaving: Sequence[Pe], num_pes: int, why: str) -> None:
        """Has the job begin again with so many PEs, without the lost ones and those that leave.

        Aborts are dropped.

        Raises:
            UsageError: a process cannot be started. The job is in its incarnation still.
        """
        assert self._recovery is not None
        now = len(self._pes)
        gone = {pe.number for pe in (*lost, *leaving)}
        places = new_places(now, gone, num_pes)
        left = [self._pes[number] for number in places]
        # The others may be reading their states, which has no limit.
        busy = [number for number in self._service.busy if number in places]
        incarnation = self._recovery.incarnation + 1
        if num_pes > now:
            self._make_room(num_pes)
        self._num_pes = num_pes
        cpus = self._bind() if num_pes != now and self._has_new_shares else None
        if cpus is not None:
            self._starter.bind(cpus)
        if self._time_limit is not None:
            self._time_limit.renumber(places)
        self._output.renumber(places)
        try:
            free = sorted(set(range(num_pes)) - set(places.values()))
            new = self._start_more(free, incarnation, num_pes)
        except UsageError:
            self._num_pes = now
            if cpus is not None and (before := self._bind()) is not None:
                self._starter.bind(before)
            raise
        self._recovery.begin([places[number] for number in busy])
        self._recovery.end_hold()
        self._aborts.clear()  # the losses, or the PEs that leave, were their reason
        self._hangups = {places[n]: at for n, at in self._hangups.items() if n in places}
        if not self._resizes.begin_again(places, num_pes):
            self._say("PEs that got SIGTERM cannot be drained: no other PE is left")
        for pe in left:
            pe.number = places[pe.number]
        self._pes[:] = sorted([*left, *new], key=lambda pe: pe.number)
        self._leavers += [(pe, time.monotonic() + LEAVE_S) for pe in leaving]
        if cpus is not None:
            for pe in left:
                pe.bind(cpus[pe.number])
        self._service.begin_again(lost, leaving, num_pes, incarnation, why)

    def _start_more(self, numbers: Sequence[int], incarnation: int, num_pes: int) -> list[Pe]:
        started: list[Pe] = []
        try:
            for number in numbers:
                started.append(self._starter.start(number, incarnation, num_pes))
        except UsageError:
            for pe in started:
                pe.send_signal(signal.SIGKILL)
                if pe.is_child:
                    os.waitpid(pe.pid, 0)
                else:
                    self._leavers.append((pe, None))
            raise
        return started

    def _name_late_pes(self) -> None:
        if self._recovery is None or not self._recovery.is_late() or self._ending:
            return
        if late := ", ".join(self._pes[number].name for number in self._service.missing):
            self._say(f"the job waits for {late}: these processes start, or read their states")

    # --- PEs that leave

    def _has_left(self, pe: Pe) -> bool:
        if not any(pe is leaver for leaver, _ in self._leavers):
            return False
        self._leaver_ended(pe)
        return True

    def _leaver_ended(self, pe: Pe) -> None:
        status = exit_status_of(pe)
        self._leavers = [(other, at) for other, at in self._leavers if other is not pe]
        self._service.has_left(pe)
        if status == 0:
            self._say(f"{pe.name} has left the job")
        elif not self._ending:
            self._say(f"{pe.name} {pe.describe_end()} while it left the job, which goes on")

    def _kill_late_leavers(self, now: float) -> None:
        for i, (pe, at) in enumerate(self._leavers):
            if at is not None and now >= at and pe.running:
                self._say(f"{pe.name} has not ended within {LEAVE_S:g} s after it left the job; killing it")
                pe.send_signal(signal.SIGKILL)
                self._leavers[i] = (pe, None)
