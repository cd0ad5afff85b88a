"""The event loop of `weft run`: one job from the start of its PEs to the exit of the last.

One thread. It wakes for a signal (SIGCHLD among them, so that a dead PE is reaped and named at once), for a
connection, or for a deadline; a job that runs undisturbed costs it nothing.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from weft.launch.binding import binding_lines, cpus_of, shares
from weft.launch.command import MAX_PES, UsageError
from weft.launch.connection import SocketConnection
from weft.launch.environment import host_environment
from weft.launch.hosts.hosts import Hosts, HostsStarter
from weft.launch.leftovers import SegmentFolder
from weft.launch.losses.recovery import LEAVE_S, LOOK_S, MOST_HOLD_S, Recovery
from weft.launch.losses.recovery import VARIABLE as ON_LOSS
from weft.launch.losses.resizes import DRAIN_VARIABLE
from weft.launch.losses.resizing import Resizer
from weft.launch.losses.survival import Survival
from weft.launch.mpi.other_mpi import OtherMpiWatch
from weft.launch.mpi.spawned import SpawnedJobs
from weft.launch.output import Output
from weft.launch.processes import (
    DESCRIPTORS_BESIDE_PES,
    Pe,
    Starter,
    describe_exit,
    exit_code_of,
    reserve_descriptors,
)
from weft.launch.service import BootstrapService
from weft.launch.signals import ReceivedSignal, SignalFd
from weft.launch.time_limit import EXIT_CODE, TimeLimit
from weft.launch.topology import usable_cores
from weft.launch.virtual_ranks import most_pes

if TYPE_CHECKING:
    from weft._top.metrics import MetricsServer

# From SIGTERM to SIGKILL for the PEs of a job that ends.
GRACE_S = 1.0
# From the end of a job by a signal that was passed on to SIGKILL: the time of `finally` and exit functions. A
# second signal kills at once.
CLEANUP_S = 5.0
# A PE whose connection has closed counts as dead if it has not exited after this time.
HANGUP_S = 2.0
# timeout(1) signals the launcher and then its process group: two signals within microseconds. A person who
# wants to kill the job takes longer.
REPEAT_S = 0.2

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PASSED_ON = (signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)


class Job(Resizer):
    """Starts a process for each command line, serves their bootstrap, and ends them together.

    `timeout_s`: so long the job may run. `bound`: each PE is bound to its share of the cores. `metrics`
    answers while the PEs run. `recovery`: the job begins again when a PE is lost. `raises`: it goes on then,
    without the PE. `hosts`: where the processes are; None: all on this host.
    """

    def __init__(
        self,
        argvs: Sequence[Sequence[str]],
        environment: Mapping[str, str],
        *,
        output: Output | None = None,
        timeout_s: float | None = None,
        bound: bool = False,
        metrics: MetricsServer | None = None,
        recovery: Recovery | None = None,
        raises: bool = False,
        hosts: Hosts | None = None,
    ) -> None:
        super().__init__(
            recovery,
            Survival() if raises else None,
            MAX_PES if recovery is None else most_pes(environment),
        )
        self._argvs = argvs
        self._num_pes = len(argvs)
        self._environment = environment
        self._output = output or Output()
        self._time_limit = None if timeout_s is None else TimeLimit(timeout_s)
        self._bound = bound
        self._metrics = metrics
        self._hosts = hosts
        self._has_new_shares = hosts is None
        self._selector = selectors.DefaultSelector()
        self._passed_at = 0.0
        self._spawned: SpawnedJobs | None = None  # from the first one on
        self._kill_at: float | None = None

    def run(self) -> int:
        """Returns the exit code of the job: 0, a PE's own, or 128 + the signal that killed it.

        Raises:
            UsageError: the PEs could not be started; those that were have been killed.
        """
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, waitpid reports no PE
        candidates = (*_INTERRUPTS, *_PASSED_ON, signal.SIGTSTP)
        watched = [number for number in candidates if signal.getsignal(number) != signal.SIG_IGN]
        self._signals = SignalFd([signal.SIGCHLD, *watched])
        try:
            self._selector.register(self._signals, selectors.EVENT_READ, self._handle_signals)
            self._service = BootstrapService(
                self._selector, self._num_pes, self._pes, self, self._recovery, self._survival
            )
            self._segments = SegmentFolder()
            try:
                self._other_mpi = OtherMpiWatch(self._argvs[0], self._num_pes)
                if (sentence := self._other_mpi.before_start()) is not None:
                    self._say(sentence)
                self._start_pes()
                if self._metrics is not None:
                    self._metrics.start()  # its threads must not be there when PEs are forked
                    self._say(f"metrics at {self._metrics.url}")
                while self._is_anything_running() or self._is_output_pending():
                    self._wait_and_handle()
                return self._exit_code
            finally:
                self._kill_all()
                if self._metrics is not None:
                    self._metrics.close()
                if self._time_limit is not None:
                    self._time_limit.close()
                if self._hosts is not None:
                    self._hosts.close()
                self._segments.close()
                self._service.close()
                self._selector.close()
        finally:
            self._signals.close()

    def _is_anything_running(self) -> bool:
        return any(pe.running for pe in self._all_pes) or (
            self._spawned is not None and self._spawned.running
        )

    def _is_output_pending(self) -> bool:
        # `_output` closes its pipes when it is asked, and what other hosts have sent may go through them.
        return (self._hosts is not None and self._hosts.is_pending) or self._output.is_pending()

    def _wait_and_handle(self) -> None:
        limit = None if self._time_limit is None else self._time_limit.deadline
        others = (
            self._kill_at,
            self._other_mpi.deadline,
            limit,
            None if self._hosts is None else self._hosts.deadline,
            *(self._recovery.deadlines if self._recovery is not None and not self._ending else ()),
            *(at for pe, at in self._leavers if pe.running),
        )
        now = time.monotonic()
        # A process that is ending is looked at again.
        hangups = [at if at > now else now + LOOK_S for at in self._hangups.values()]
        deadlines = [*hangups, *(deadline for deadline in others if deadline is not None)]
        timeout = max(0.0, min(deadlines) - now) if deadlines else None
        for key, events in self._selector.select(timeout):
            if isinstance(key.data, SocketConnection):
                self._service.handle(key.data, events)
            else:
                key.data()
        if self._hosts is not None:
            self._hosts.tick(time.monotonic())
        self._settle()
        self._handle_deadlines(time.monotonic())

    def _handle_deadlines(self, now: float) -> None:
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_all()
        if self._other_mpi.deadline is not None and now >= self._other_mpi.deadline:
            self._look_for_another_mpi(now)
        if self._time_limit is not None:
            self._check_time_limit(self._time_limit, now)
        if self._recovery is not None and (busy := self._recovery.busy()):
            self._end(
                f"{self._pes[busy[0]].name} has not left the job within {LEAVE_S:g} s after a loss, or for "
                "another number of PEs: an entry method or a finally block runs, or the process is stopped. "
                "Make entry methods shorter",
                1,
            )
        self._name_late_pes()
        self._kill_late_leavers(now)
        for number, deadline in list(self._hangups.items()):
            pe = self._pes[number]
            # It can be reaped soon, and then its exit says more.
            is_awaited = pe.is_dying and now < deadline + MOST_HOLD_S
            if now >= deadline and not is_awaited:
                del self._hangups[number]
                if (broken_off := self._service.connections[number].broken_off) is not None:
                    self._end(f"{pe.name}: {broken_off}", 1)
                else:
                    self._end(f"{pe.name} closed its connection to the launcher before it had finished", 1)

    def _check_time_limit(self, limit: TimeLimit, now: float) -> None:
        if limit.deadline is None or now < limit.deadline:
            return
        limit.deadline = None
        if not self._ending and self._is_anything_running():
            for report in limit.reports():
                self._say(report.rstrip())
            self._end(limit.reason, EXIT_CODE)

    # --- processes

    def _start_pes(self) -> None:
        common = {
            **self._output.attach(self._selector, self._num_pes),
            **self._environment,
            "WEFT_NUM_PES": str(self._num_pes),
        }
        # A PE that a program starts itself may have inherited it.
        common.pop(ON_LOSS, None)
        if self._recovery is not None:
            common[ON_LOSS] = "shrink" if self._recovery.shrinks else "restart"
        if self._survival is not None:
            common[ON_LOSS] = "raise"
        starter = self._starter = self._make_starter(common)
        if self._recovery is not None and self._recovery.shrinks and starter.has_several_programs:
            raise UsageError("--on-loss shrink cannot be given with several programs: give restart")
        self._make_room(self._num_pes)
        for number in range(self._num_pes):
            self._pes.append(self._start_pe(starter, number))

    def _make_starter(self, common: dict[str, str]) -> Starter:
        """`common`: what the environment of all PEs has."""
        hosts = self._hosts
        if hosts is not None:
            common = {**hosts.variables(), **common}
        num_here = self._num_pes if hosts is None else max(1, hosts.num_here)
        self._environment = host_environment(common, num_here, self._segments.path, self._service.path)
        here = self._argvs, self._environment, self._signals, self._output, self._time_limit, self._bind()
        if hosts is None:
            return Starter(*here)
        starter = HostsStarter(hosts, *here)
        job = {"environment": common, "is_bound": self._bound}
        hosts.begin(self._selector, self._service, self, job, starter)
        return starter

    def _make_room(self, num_pes: int) -> None:
        of_pe = 1 + self._output.descriptors_per_pe + (self._time_limit is not None)
        if self._hosts is not None:
            of_pe += 2 + self._output.descriptors_per_pe
        reserve_descriptors(of_pe * num_pes + DESCRIPTORS_BESIDE_PES)

    def _start_pe(self, starter: Starter, number: int) -> Pe:
        return starter.start(number)

    def _bind(self) -> list[set[int]] | None:
        """Prints the map of the binding. Returns the CPUs of each PE, or None if PEs are not bound."""
        if not self._bound:
            return None
        num_here = self._num_pes if self._hosts is None else self._hosts.num_here
        if num_here == 0:
            return None
        parts = shares(usable_cores(os.sched_getaffinity(0)), num_here)
        for line in binding_lines(parts, 0 if self._hosts is None else self._hosts.first_here):
            self._say(line)
        return cpus_of(parts)

    def _reap(self) -> None:
        # Looked up anew in each turn: what is read may have the job begin again, with other processes.
        while self._has_children():
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if self._spawned is not None and pid in self._spawned:
                self._judge_spawned(self._spawned, pid, os.waitstatus_to_exitcode(status))
                continue
            exit_status = os.waitstatus_to_exitcode(status)
            if self._hosts is not None and self._hosts.reaped(pid, exit_status):
                continue
            pe = next((pe for pe in self._all_pes if pe.is_child and pe.pid == pid and pe.running), None)
            if pe is not None:
                self._note_exit(pe, exit_status)

    def _note_exit(self, pe: Pe, status: int) -> None:
        pe.exit_status = status
        if self._has_left(pe):
            return
        self._hangups.pop(pe.number, None)
        self._reaped.append(pe)
        # Frames that it sent last, such as "finished" or "abort", may still be unread.
        if (connection := self._service.connections.get(pe.number)) is not None:
            self._service.read(connection)

    def _has_children(self) -> bool:
        return (
            any(pe.running and pe.is_child for pe in self._all_pes)
            or (self._spawned is not None and self._spawned.running)
            or (self._hosts is not None and self._hosts.has_children())
        )

    def _judge_spawned(self, jobs: SpawnedJobs, pid: int, status: int) -> None:
        """A job that fails after it has connected ends the job that has spawned it, as a PE would."""
        for connection in list(self._service.connections.values()):
            self._service.read(connection)  # that it has connected may still be unread
        job = jobs.ended(pid, status)
        if job.is_connected and status != 0:
            self._end(f"the spawned job `{job.command}` {describe_exit(status)}", exit_code_of(status))

    def _kill_all(self) -> None:
        self._killed = True
        self._kill_at = None
        if self._spawned is not None:
            self._spawned.kill()
        for pe in self._all_pes:
            pe.send_signal(signal.SIGKILL)
        for pe in self._all_pes:
            if pe.running and pe.is_child:
                _, status = os.waitpid(pe.pid, 0)
                pe.exit_status = os.waitstatus_to_exitcode(status)
        if self._hosts is not None:
            self._hosts.kill_pes()

    # --- why a job ends

    def _look_for_another_mpi(self, now: float) -> None:
        pe = self._pes[0]
        if not pe.running or not pe.is_child:
            self._other_mpi.stop()
        elif (finding := self._other_mpi.look(pe.pid, now)) is not None:
            if finding.is_error:
                self._end(finding.sentence, 1)
            else:
                self._say(finding.sentence)

    def _end_interrupted(self, number: signal.Signals) -> None:
        """The PEs have the signal, and clean up."""
        self._end(f"interrupted by signal {int(number)} ({number.name})", 128 + number, terminates=False)

    def _end(self, reason: str, exit_code: int, *, terminates: bool = True) -> None:
        """Prints the reason, sends it to every PE, and sets the time at which the rest are killed."""
        if self._ending:
            return
        self._ending = True
        self._exit_code = exit_code
        self._hangups.clear()
        others = self._is_anything_running()
        self._say(f"{reason}; ending the job" if others else reason)
        self._service.end(f"the job ends: {reason}")
        for pe in self._all_pes:
            if terminates:
                pe.send_signal(signal.SIGTERM)
            pe.send_signal(signal.SIGCONT)
        if self._spawned is not None:
            if terminates:
                self._spawned.send_signal(signal.SIGTERM)
            self._spawned.send_signal(signal.SIGCONT)
        self._kill_at = time.monotonic() + (GRACE_S if terminates else CLEANUP_S)

    # --- events of the service

    def joined(self, pe: Pe) -> None:
        """A PE has connected. The job ends if another one has exited already."""
        self._other_mpi.stop()
        self._check_all_joined()
        self._count_joined(pe)

    def joined_again(self, pe: Pe) -> None:
        """A PE has left the incarnation in which others were lost, and is in the next one."""
        self._count_joined(pe)

    def stopped(self, pe: Pe) -> None:
        """A PE has left the incarnation in which others were lost, and begins its program again."""
        if self._recovery is not None:
            self._recovery.left(pe.number)

    def _count_joined(self, pe: Pe) -> None:
        if self._recovery is None:
            return
        connections = self._service.connections
        if not connections[pe.number].is_leaving:
            self._recovery.left(pe.number)
        if self._service.is_complete:
            self._recovery.all_joined()
            self._offer_plan()

    def protected(self, number: int, plan: int) -> None:
        """All PEs have protected a state, perhaps for another number of PEs."""
        if self._recovery is not None:
            self._recovery.protected(number)
            self._carry_out(plan)

    def joined_next_job(self, pe: Pe) -> None:
        """The exit code of the job before does not count: the program goes on."""
        if not self._ending:
            self._exit_code = 0

    def finished(self, pe: Pe) -> None:
        """A PE is done. Its exit code counts from now on, even if its exit fails later."""
        self._exit_code = self._exit_code or pe.finished_code or 0
        if self._service.connections[pe.number].is_leaving:
            self._end(f"{pe.name} had finished the job when another PE was lost", self._exit_code or 1)

    def aborted(self, pe: Pe, exit_code: int, message: str) -> None:
        """A PE wants the job to end."""
        self._aborts.append((pe, exit_code, message))

    def asked_for_job(self, pe: Pe, request: bytes) -> None:
        """A PE of an MPI job spawns processes."""
        if self._ending:
            return
        if self._spawned is None:
            self._spawned = SpawnedJobs(self._signals)
        self._spawned.start(request)

    def hung_up(self, pe: Pe) -> None:
        """A PE's connection has closed before the PE was done: the process is about to exit, or it hangs."""
        if pe.running and not self._ending:
            self._hangups[pe.number] = time.monotonic() + HANGUP_S

    def broke_protocol(self, problem: str) -> None:
        """A PE sent a frame that is not allowed at that time."""
        self._end(problem, 1)

    def refused(self, problem: str) -> None:
        """A process that is no PE was refused. The job continues."""
        if not self._ending:
            self._say(f"refused {problem}")

    # --- signals

    def _handle_signals(self) -> None:
        for received in self._signals.read():
            if received.number is signal.SIGCHLD:
                self._reap()
            elif received.number in _INTERRUPTS:
                self._interrupt(received)
            elif received.number is signal.SIGTSTP:
                # Not SIGTSTP: it does nothing in a process group without a shell to bring it back (in CI).
                for pe in self._all_pes:
                    pe.send_signal(signal.SIGSTOP)
                if self._spawned is not None:
                    self._spawned.send_signal(signal.SIGTSTP)
                if self._hosts is not None:
                    self._hosts.pause()
                os.kill(os.getpid(), signal.SIGSTOP)
            else:
                self._pass_on(received)

    def _interrupt(self, received: ReceivedSignal) -> None:
        if not self._is_anything_running():  # only a reader of the output is waited for
            self._exit_code = 128 + received.number
            self._output.abandon()
            if self._hosts is not None:
                self._hosts.abandon_output()
            return
        now = time.monotonic()
        repeated = received.number is self._passed_signal and now < self._passed_at + REPEAT_S
        if self._killed or repeated:
            return
        if self._ending or self._passed_signal is not None:
            self._ending = True
            self._exit_code = 128 + received.number
            self._say(f"second signal ({received.number.name}); killing the job")
            self._kill_all()
            return
        self._passed_signal = received.number
        self._passed_at = now
        if received.number is signal.SIGTERM and self._environment.get(DRAIN_VARIABLE) == "SIGTERM":
            self._end_interrupted(received.number)  # to a PE the signal says something else
            return
        self._say(f"{received.number.name} is passed on to the PEs; a second one kills the job")
        self._pass_on(received)

    def _pass_on(self, received: ReceivedSignal) -> None:
        # The PEs of this host have it already. That a terminal has gone may be told to the launcher alone.
        is_told = received.from_terminal and received.number is not signal.SIGHUP
        for pe in self._all_pes:
            if is_told and pe.is_child:
                continue
            pe.send_signal(received.number, if_handled=received.number is signal.SIGUSR1)
        if self._spawned is not None and not is_told:
            self._spawned.send_signal(received.number)

    # --- words

    def _say(self, sentence: str) -> None:
        self._write(f"weft run: {sentence}\n")

    def _write(self, text: str) -> None:
        if self._output.write(text):
            return
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            pass  # stderr is closed; the exit code remains
