"""PEs as processes: starts them, signals them, and describes how one ended."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.launch.command import UsageError
from weft.launch.losses.recovery import INCARNATION_VARIABLE
from weft.launch.output import Output
from weft.launch.signals import SignalFd, die_with_parent, handles
from weft.launch.time_limit import VARIABLE as TIME_LIMIT_VARIABLE
from weft.launch.time_limit import TimeLimit

# Of the flags of a process in /proc, see include/linux/sched.h.
_PF_EXITING = 4


@dataclass
class Pe:
    """One PE. `exit_status` is what waitpid said, as an exit code or a negative signal number."""

    number: int
    pid: int
    # Behind a wrapper (`weft run -n 2 numactl prog`) another process connects than the one that was started.
    connected_pid: int | None = None
    exit_status: int | None = None
    # Set when the PE has said that it is done. Its exit is no death from then on.
    finished_code: int | None = None
    # In which it was started.
    incarnation: int = 0
    # Its number then, which is in its environment.
    started_as: int = -1
    # Among the PEs of its host when it was started; no other one that runs there has it.
    local_rank: int = -1
    # Not so for a process that has started this launcher: it is neither signalled nor reaped.
    is_child: bool = True

    def __post_init__(self) -> None:
        if self.started_as < 0:
            self.started_as = self.number
        if self.local_rank < 0:
            self.local_rank = self.number

    @property
    def name(self) -> str:
        """The PE's name in messages."""
        return f"PE {self.number} (pid {self.pid})"

    @property
    def running(self) -> bool:
        """Whether it has not been reaped yet."""
        return self.exit_status is None

    @property
    def is_dying(self) -> bool:
        """Whether the process is ending, but cannot be reaped yet."""
        if not self.running or not self.is_child:
            return False
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return bool(int(stat.rpartition(")")[2].split()[6]) & _PF_EXITING)

    def describe_end(self) -> str:
        """How it has ended, see `describe_exit`. REQUIRES: it has been reaped."""
        assert self.exit_status is not None
        return describe_exit(self.exit_status)

    def bind(self, cpus: set[int]) -> None:
        """Binds all threads of the process to the CPUs."""
        pid = self.connected_pid or self.pid
        with contextlib.suppress(OSError):  # it has ended
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setaffinity(int(thread), cpus)

    def send_signal(self, number: int, *, if_handled: bool = False) -> None:
        """Signals the process, and the one that connected if that is another. Skips what has exited.

        `if_handled`: a process without a handler, which would die of it, is skipped: its job has not begun
        yet, or has ended.
        """
        if not self.is_child:
            return
        targets = {self.pid, self.connected_pid or self.pid}
        if not self.running:
            # Another process may have its number now. A child of the PE may still be connected.
            targets.discard(self.pid)
        for pid in targets:
            if if_handled and not handles(pid, number):
                continue
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass  # it has exited, or its number belongs to another user


def describe_exit(status: int) -> str:
    """For example "was killed by signal 9 (SIGKILL)" or "exited with code 3"."""
    if status >= 0:
        return f"exited with code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = "a real-time signal"
    why = ": it wrote a file larger than `ulimit -f` allows" if name == "SIGXFSZ" else ""
    return f"was killed by signal {-status} ({name}){why}"


#: MPICH's name for the number of a process on its host. Programs choose their GPU by it before MPI_Init.
LOCAL_RANK_VARIABLE = "MPI_LOCALRANKID"


def exit_code_of(status: int) -> int:
    """The exit code that a shell would report for it."""
    return status if status >= 0 else 128 - status


#: Of a launcher or an agent, besides those of its PEs.
DESCRIPTORS_BESIDE_PES = 64


def reserve_descriptors(count: int) -> None:
    """Raises the soft limit on open files where `count` needs it.

    Raises:
        UsageError: the hard limit is lower.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise UsageError(
            f"{count} open files are needed for that many PEs and the limit is {hard}: "
            "start fewer (-n) or raise the limit (ulimit -Hn)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


class Starter:
    """Starts PEs that die with this process, with the signal mask and the limits that it was itself given.

    `argvs` has the command line of each PE. The PEs of one part of the job's command line share one list.
    `cpus` has the CPUs to which each PE is bound; None: they are not bound.
    """

    def __init__(
        self,
        argvs: Sequence[Sequence[str]],
        environment: Mapping[str, str],
        signals: SignalFd,
        output: Output,
        time_limit: TimeLimit | None,
        cpus: Sequence[set[int]] | None,
    ) -> None:
        self._argvs = argvs
        self._output = output
        self._time_limit = time_limit
        self._cpus = cpus
        parts: dict[int, int] = {}
        self._parts = [parts.setdefault(id(argv), len(parts)) for argv in argvs]  # of each PE
        self._environment = environment
        self._signals = signals
        self._limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._launcher_pid = os.getpid()

    @property
    def programs(self) -> list[Sequence[str]]:
        """The command lines."""
        return [self._argvs[self._parts.index(part)] for part in range(self._parts[-1] + 1)]

    @property
    def program_of_pe(self) -> list[int]:
        """Which of `programs` each PE has."""
        return self._parts

    @property
    def has_several_programs(self) -> bool:
        """Whether the PEs have different command lines."""
        return self._parts[-1] > 0

    def bind(self, cpus: Sequence[set[int]]) -> None:
        """The CPUs of each PE from now on."""
        self._cpus = cpus

    def start(
        self, number: int, incarnation: int = 0, num_pes: int | None = None, local_rank: int | None = None
    ) -> Pe:
        """Starts one PE; PE 0 has the terminal's input, the others none.

        `incarnation`: how often the job has begun again. `num_pes`: if it is another number than at first.
        `local_rank`: in a job of several hosts, that among the PEs of this one. PEs beyond the first ones
        have the last command line.

        Raises:
            UsageError: the system refuses to run the program.
        """
        argv = self._argvs[min(number, len(self._argvs) - 1)]
        rank = number if local_rank is None else local_rank
        environment = {**self._environment, "WEFT_PE": str(number), LOCAL_RANK_VARIABLE: str(rank)}
        if num_pes is not None:
            environment["WEFT_NUM_PES"] = str(num_pes)
        if self.has_several_programs:
            environment["WEFT_PROGRAM"] = str(self._parts[number])
        if incarnation > 0:
            environment[INCARNATION_VARIABLE] = str(incarnation)
        passed: tuple[int, ...] = ()
        if self._time_limit is not None:
            environment[TIME_LIMIT_VARIABLE], passed = self._time_limit.of_pe(number)
        stdout, stderr = self._output.open(number)
        try:
            process = subprocess.Popen(
                argv,
                env=environment,
                stdin=None if number == 0 else subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=passed,
                preexec_fn=lambda: self._between_fork_and_exec(rank),
            )
        except OSError as error:
            raise UsageError(f"{argv[0]}: cannot be run as PE {number}: {error.strerror}") from None
        finally:
            self._output.close_opened()
        # The job reaps by pid; without this the Popen object would do so as well.
        process.returncode = 0
        return Pe(number, process.pid, incarnation=incarnation, local_rank=rank)

    def _between_fork_and_exec(self, local_rank: int) -> None:
        die_with_parent(self._launcher_pid)
        if self._cpus is not None:
            os.sched_setaffinity(0, self._cpus[local_rank % len(self._cpus)])
        self.restore()

    def restore(self) -> None:
        """Gives a process between fork and exec the signal mask and the limits of this one's start."""
        resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)
        self._signals.restore_mask()
