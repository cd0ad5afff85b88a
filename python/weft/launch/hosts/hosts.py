"""The hosts of one job: which host each PE gets, and the starter of PEs that asks for it.

Threads: the launcher's. Nothing here blocks but `Hosts.close`, and for a moment the end of a link.
"""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.launch.command import UsageError
from weft.launch.environment import JOB_NAME
from weft.launch.hosts.host_list import HostSlots
from weft.launch.hosts.link import PING_S, Kind
from weft.launch.hosts.remote_host import Owner, RemoteHost, Surroundings, free_rank
from weft.launch.output import UNBUFFERED, Output, Sink
from weft.launch.processes import Pe, Starter
from weft.launch.service import BootstrapService
from weft.launch.signals import SignalFd
from weft.launch.time_limit import TimeLimit

# From the end of the job to SIGKILL for remote shells.
_CLOSE_S = 5.0


class Hosts:
    """The hosts of one job of `num_pes` PEs.

    `given`: names of variables that the user has set for all hosts.
    """

    def __init__(self, named: Sequence[HostSlots], num_pes: int, given: Iterable[str] = ()) -> None:
        self._named = named
        self._given = list(given)
        # How many PEs each host begins with.
        self._begin = [0] * len(named)
        for i, host in enumerate(named):
            self._begin[i] = min(host.slots, num_pes - sum(self._begin))
        self._hosts = [None if host.is_here else RemoteHost(host) for host in named]  # None: the launcher's
        self._here: list[Pe] = []
        self._tick_at: float | None = None
        self._pe_sinks: list[Sink] = []

    def variables(self) -> dict[str, str]:
        """What the environment of its PEs needs, unless it is set; PEs of other hosts write into pipes."""
        return {**UNBUFFERED, JOB_NAME: f"{os.uname().nodename} {os.getpid()} {time.time_ns()}"}

    def begin(
        self,
        selector: selectors.BaseSelector,
        service: BootstrapService,
        owner: Owner,
        job: Mapping[str, Any],
        starter: Starter,
    ) -> None:
        """The job begins. `job`: what agents need to know of it, see `Agent.begin`."""
        self._selector = selector
        self._own_sinks = (Sink(selector, 1), Sink(selector, 2))
        self._around = Surroundings(selector, service, owner, starter.restore, self._own_sinks[1].put)
        programs = {"programs": starter.programs, "program_of_pe": starter.program_of_pe}
        self._job = {**job, **programs, "given": self._given, "folder": os.getcwd()}
        self._tick_at = time.monotonic() + PING_S

    @property
    def remote(self) -> list[RemoteHost]:
        """Those that are not the launcher's."""
        return [host for host in self._hosts if host is not None]

    @property
    def num_here(self) -> int:
        """How many PEs begin on the launcher's own host."""
        return sum(count for count, host in zip(self._begin, self._named, strict=True) if host.is_here)

    @property
    def first_here(self) -> int:
        """The number of the first one of them."""
        here = next((i for i, host in enumerate(self._named) if host.is_here), 0)
        return sum(self._begin[:here])

    @property
    def deadline(self) -> float | None:
        """When `tick` is to be called."""
        return self._tick_at

    def tick(self, now: float) -> None:
        """Looks after the links, if it is time."""
        if self._tick_at is None or now < self._tick_at:
            return
        was_stopped = now > self._tick_at + PING_S
        self._tick_at = now + PING_S
        for host in self.remote:
            if host.link is not None and was_stopped:
                host.link.forgive(now)
            if host.link is not None:
                host.link.tick(now)

    def job_of(self, host: RemoteHost) -> dict[str, Any]:
        """The job as its agent needs to know it."""
        at = self._hosts.index(host)
        return {**self._job, "num_pes": self._begin[at] or self._named[at].slots}

    def place(self) -> RemoteHost | None:
        """Where the next PE is started; None: on the launcher's host.

        The first host with room; without room, the host that has the least too many.

        Raises:
            UsageError: all hosts are lost.
        """
        living = [i for i, host in enumerate(self._hosts) if host is None or not (host.loss or host.is_unfit)]
        if not living:
            raise UsageError("no host is left")
        room = [self._named[i].slots - self._num_running(i) for i in living]
        first = next((k for k, free in enumerate(room) if free > 0), None)
        return self._hosts[living[first if first is not None else room.index(max(room))]]

    def _num_running(self, index: int) -> int:
        host = self._hosts[index]
        return sum(pe.running for pe in (self._here if host is None else host.pes))

    def start(
        self, host: RemoteHost, number: int, incarnation: int, num_pes: int | None, output: Output
    ) -> Pe:
        """Has a host start a PE, which writes to what `output` opens.

        Raises:
            UsageError: the host's remote shell cannot be started.
        """
        if host.link is None:
            host.reach(self._around, self.job_of(host))
        sinks = self._sinks_of(output.open(number))
        output.close_opened()
        return host.start(number, incarnation, num_pes, sinks)

    def started_here(self, pe: Pe) -> None:
        """A PE has been started on the launcher's host."""
        self._here = [*(one for one in self._here if one.running), pe]

    @property
    def free_rank_here(self) -> int:
        """The local rank of the next PE on the launcher's host."""
        return free_rank(self._here)

    def _sinks_of(self, opened: tuple[int | None, int | None]) -> tuple[Sink, Sink]:
        """Where a PE's output goes: to the descriptors, or to the launcher's own."""
        out, err = opened
        if out is None or err is None:
            return self._own_sinks
        first = Sink(self._selector, os.dup(out), is_owner=True)
        second = first if err == out else Sink(self._selector, os.dup(err), is_owner=True)
        self._pe_sinks = [sink for sink in self._pe_sinks if not sink.closed] + [first, second]
        return first, second

    @property
    def is_pending(self) -> bool:
        """Whether output of PEs is still to be written."""
        return any(sink.is_pending for sink in (*self._own_sinks, *self._pe_sinks))

    def abandon_output(self) -> None:
        """Drops what is pending."""
        for sink in (*self._own_sinks, *self._pe_sinks):
            sink.abandon()

    def reaped(self, pid: int, status: int) -> bool:
        """Whether a process that has ended is the remote shell of a host."""
        return any(host.link is not None and host.link.reaped(pid, status) for host in self.remote)

    def has_children(self) -> bool:
        """Whether a remote shell runs."""
        return any(host.link is not None and host.link.is_running for host in self.remote)

    def pause(self) -> None:
        """The launcher is about to be stopped."""
        for host in self.remote:
            host.send(Kind.PAUSE)

    def kill_pes(self) -> None:
        """The PEs of other hosts count as killed; `close` sees to it."""
        for host in self.remote:
            host.kill_pes()

    def close(self) -> None:
        """Ends the agents."""
        deadline = time.monotonic() + _CLOSE_S
        for host in self.remote:
            if host.link is not None:
                host.link.close(deadline)


class HostsStarter(Starter):
    """Starts PEs on the hosts of a job. Its other parameters are those for PEs of the launcher's host."""

    def __init__(
        self,
        hosts: Hosts,
        argvs: Sequence[Sequence[str]],
        environment: Mapping[str, str],
        signals: SignalFd,
        output: Output,
        time_limit: TimeLimit | None,
        cpus: Sequence[set[int]] | None,
    ) -> None:
        super().__init__(argvs, environment, signals, output, time_limit, cpus)
        self._hosts = hosts

    def start(
        self, number: int, incarnation: int = 0, num_pes: int | None = None, local_rank: int | None = None
    ) -> Pe:
        host = self._hosts.place()
        if host is not None:
            return self._hosts.start(host, number, incarnation, num_pes, self._output)
        pe = super().start(number, incarnation, num_pes, local_rank=self._hosts.free_rank_here)
        self._hosts.started_here(pe)
        return pe
