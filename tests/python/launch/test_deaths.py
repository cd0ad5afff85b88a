"""How deaths and aborts of PEs are judged together, without processes of a job."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

from weft.launch.losses.recovery import Recovery
from weft.launch.losses.resizing import Resizer
from weft.launch.losses.survival import Survival
from weft.launch.output import Output
from weft.launch.processes import Pe
from weft.launch.processes import Starter as ProcessStarter
from weft.launch.service import BootstrapService

KILLED = -int(signal.SIGKILL)


class Service:
    """The connections of PEs that can begin again; `on_read` is what a connection still has."""

    can_begin_again = True

    def __init__(self, pes: list[Pe], on_read: Callable[[], None]) -> None:
        self.connections: dict[int, Any] = {pe.number: object() for pe in pes}
        self.busy = list(self.connections)
        self.missing: list[int] = []
        self.read = lambda _connection: on_read()
        self.begun: list[tuple[list[int], int]] = []
        self.plans: list[tuple[int, int, tuple[int, ...]]] = []
        self.is_complete = True
        self.lost: list[int] = []

    def lose(self, lost: int, why: str) -> None:
        """Remembers the loss, which the other PEs are told."""
        self.lost.append(lost)

    def begin_again(
        self, lost: list[Pe], leaving: list[Pe], num_pes: int, incarnation: int, why: str
    ) -> None:
        """Remembers who was lost, and who leaves."""
        self.begun.append(([pe.number for pe in lost], incarnation))
        self.left = [pe.number for pe in leaving]
        self.num_pes = num_pes

    def tell_plan(self, number: int, num_pes: int, leaving: list[int]) -> None:
        """Remembers the plan."""
        self.plans.append((number, num_pes, tuple(leaving)))

    def has_left(self, pe: Pe) -> None:
        """The connection of a PE that leaves is closed."""

    def expect_no_next_job(self, pe: Pe) -> None:
        """No other PE waits."""


class Starter:
    """Starts nothing."""

    has_several_programs = False

    def start(self, number: int, incarnation: int, num_pes: int) -> Pe:
        """The PE in the place of a lost one."""
        return Pe(number, 1_000 + number, incarnation=incarnation, is_child=False)


class Judge(Resizer):
    """A job of two PEs, or more. `reap_next` are the statuses that waitpid gives next, by PE."""

    def __init__(
        self,
        on_read: Callable[[Judge], None] = lambda _judge: None,
        *,
        num_pes: int = 2,
        shrinks: bool = False,
        survival: Survival | None = None,
    ) -> None:
        super().__init__(None if survival is not None else Recovery(shrinks=shrinks), survival)
        self._pes = [Pe(number, number + 1, is_child=False) for number in range(num_pes)]
        self._output = Output()
        self._time_limit = None
        self._num_pes = num_pes
        self.service = Service(self._pes, lambda: on_read(self))
        self._service = cast(BootstrapService, self.service)
        self._starter = cast(ProcessStarter, Starter())
        self.said: list[str] = []
        self.reap_next: dict[int, int] = {}

    @property
    def pes(self) -> list[Pe]:
        """The PEs as they are now."""
        return self._pes

    @property
    def exit_code(self) -> int:
        """That of the job, as it is now."""
        return self._exit_code

    def carry_out(self, plan: int) -> None:
        """The PEs have protected a state for the plan."""
        self._carry_out(plan)

    def offer_plan(self) -> None:
        """All PEs have joined again."""
        self._offer_plan()

    def end_leaver(self, pe: Pe) -> None:
        """The process of a PE that leaves has ended."""
        pe.exit_status = 0
        self._leaver_ended(pe)

    def kill_late_leavers(self, now: float) -> None:
        """Kills those that have not ended by then."""
        self._kill_late_leavers(now)

    def name_late_pes(self) -> list[int]:
        """Says which PEs are waited for. Returns those that have had time enough to leave."""
        assert self._recovery is not None
        self._name_late_pes()
        return self._recovery.busy()

    def pass_on(self, number: signal.Signals) -> None:
        """The launcher has passed a signal on to the PEs."""
        self._passed_signal = number

    def has_several_programs(self) -> None:
        """The PEs have different command lines."""
        cast(Any, self._starter).has_several_programs = True

    def settle(self) -> None:
        """Judges what has come, as `Job` does after each turn."""
        self._settle()

    def abort(self, number: int) -> None:
        """The PE wants the job to end."""
        self._aborts.append((self._pes[number], 1, "it has lost a PE"))

    def die(self, number: int, status: int) -> None:
        """The PE has been reaped."""
        self._note_exit(self._pes[number], status)

    def _note_exit(self, pe: Pe, status: int) -> None:
        pe.exit_status = status
        self._reaped.append(pe)

    def _make_room(self, num_pes: int) -> None:
        pass

    def _bind(self) -> list[set[int]] | None:
        return None

    def _reap(self) -> None:
        for number, status in self.reap_next.items():
            self.die(number, status)
        self.reap_next = {}

    def _end(self, reason: str, exit_code: int, *, terminates: bool = True) -> None:
        self._ending = True
        self._exit_code = exit_code
        self.said.append(reason)

    def _end_interrupted(self, number: signal.Signals) -> None:
        raise AssertionError("no signal was passed on")

    def _say(self, sentence: str) -> None:
        self.said.append(sentence)

    def _write(self, text: str) -> None:
        self.said.append(text)


def test_an_abort_that_arrives_while_a_loss_is_judged_is_dropped() -> None:
    judge = Judge(on_read=lambda judge: judge.abort(0))
    judge.die(1, KILLED)
    judge.settle()
    assert judge.service.begun == [([1], 1)]
    for _ in range(2):
        judge.settle()
    assert judge.exit_code == 0 and not judge.pes[1].is_child
    assert [sentence for sentence in judge.said if "abort" in sentence] == []
    # Nothing is held: no deadline is left that would judge it later.
    assert judge._recovery is not None and judge._recovery.deadlines[2:] == [] and not judge._aborts


def outliving(num_pes: int, *, may_lose_pe_0: bool) -> Judge:
    """A job of PEs that outlive losses."""
    survival = Survival()
    for pe in range(num_pes):
        survival.outlives(pe, may_lose_pe_0=may_lose_pe_0)
    return Judge(num_pes=num_pes, survival=survival)


def test_a_job_that_outlives_losses_goes_on_after_two_at_once() -> None:
    judge = outliving(3, may_lose_pe_0=True)
    judge.die(0, KILLED)
    judge.die(2, KILLED)
    judge.settle()
    assert judge.service.lost == [0, 2] and judge.exit_code == 0
    assert judge.said == [
        "PE 0 (pid 1) was killed by signal 9 (SIGKILL); the job goes on without it",
        "PE 2 (pid 3) was killed by signal 9 (SIGKILL); the job goes on without it",
    ]


def test_a_pe_that_is_lost_with_another_one_may_have_been_starting() -> None:
    judge = Judge(num_pes=3, survival=(survival := Survival()))
    survival.outlives(0, may_lose_pe_0=True)
    judge.die(1, KILLED)
    judge.die(2, KILLED)
    judge.settle()
    assert judge.service.lost == [1, 2] and judge.exit_code == 0


def test_the_loss_of_pe_0_ends_a_job_whose_main_it_runs() -> None:
    judge = outliving(2, may_lose_pe_0=False)
    judge.die(0, KILLED)
    judge.settle()
    assert judge.service.lost == [] and judge.exit_code == 137
    assert judge.said[0].endswith("; main runs on PE 0, and the job cannot go on without it")


def test_an_exit_of_the_programs_own_is_no_loss_to_outlive() -> None:
    judge = outliving(2, may_lose_pe_0=True)
    judge.die(1, 3)
    judge.settle()
    assert judge.service.lost == [] and judge.exit_code == 3


def test_an_abort_waits_for_the_death_that_is_its_reason() -> None:
    judge = Judge()
    judge.abort(0)
    judge.settle()
    assert judge.said == []
    judge.reap_next = {1: KILLED}
    judge.settle()
    assert judge.service.begun == [([1], 1)] and judge.exit_code == 0


def test_a_new_process_that_is_lost_before_it_joins_is_replaced() -> None:
    judge = Judge()
    judge.die(1, KILLED)
    judge.settle()
    judge.die(1, KILLED)
    judge.settle()
    assert judge.service.begun == [([1], 1), ([1], 2)] and judge.pes[1].incarnation == 2


def test_a_new_process_that_exits_before_it_joins_ends_the_job() -> None:
    judge = Judge()
    judge.die(1, KILLED)
    judge.settle()
    judge.die(1, 3)
    judge.settle()
    assert judge.exit_code == 3 and "PE 1 (pid 1001) exited with code 3" in judge.said


def test_a_pe_that_is_killed_after_all_had_finished_gives_the_exit_code() -> None:
    judge = Judge()
    for pe in judge.pes:
        pe.finished_code = 0
    judge.die(1, KILLED)
    judge.settle()
    assert judge.service.begun == [] and judge.exit_code == 137
    assert judge.said == ["PE 1 (pid 2) was killed by signal 9 (SIGKILL) after it had finished"]


def test_the_child_of_a_lost_wrapper_is_killed() -> None:
    judge = Judge()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        judge.pes[1].is_child = True
        judge.pes[1].connected_pid = child.pid
        judge.die(1, KILLED)
        judge.settle()
        assert child.wait() == KILLED
