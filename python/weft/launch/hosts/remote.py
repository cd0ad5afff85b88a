"""The launcher's side of hosts: their agents, the PEs there, and which host each PE gets.

Threads: the launcher's. Nothing here blocks but `close`, and for a moment the end of a link.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from weft.launch.command import UsageError
from weft.launch.connection import Connection
from weft.launch.hosts.host_list import HostSlots
from weft.launch.hosts.link import (
    GREETING,
    GREETING_S,
    PING_S,
    SILENCE_S,
    Decoder,
    Kind,
    LinkError,
    Outgoing,
    message,
)
from weft.launch.output import Output, Sink
from weft.launch.processes import Pe, Starter, describe_exit
from weft.launch.service import BootstrapService

#: The remote shell, a command to which a host and a command line are added.
SHELL_VARIABLE = "WEFT_REMOTE_SHELL"
_SHELL = "ssh -x -T -o BatchMode=yes -o ConnectTimeout=15"
# From the end of the job to SIGKILL for remote shells.
_CLOSE_S = 5.0
_READ_BYTES = 256 << 10
_PACKAGES = Path(__file__).resolve().parents[3]
_AGENT = "import sys; sys.path.insert(0, {path!r}); from weft.launch.hosts.agent import main; main()"


class Owner(Protocol):
    """What happens on hosts, for the job."""

    def exited_elsewhere(self, pe: Pe, status: int) -> None:
        """A PE of another host has ended; its last frames have been handed to the service."""

    def host_lost(self, pes: Sequence[Pe]) -> None:
        """A host is lost, and these PEs with it."""

    def cannot_start(self, sentence: str, pes: Sequence[Pe]) -> None:
        """A host cannot be reached, or these PEs not be started there."""

    def said_elsewhere(self, sentence: str) -> None:
        """A host has something to say to the user."""


class RemotePe(Pe):
    """A PE of another host. Its `pid` is 0 until the host has told it."""

    def __init__(self, host: RemoteHost, key: int, number: int, incarnation: int, local_rank: int) -> None:
        super().__init__(number, 0, incarnation=incarnation, local_rank=local_rank, is_child=False)
        self.host = host
        self.key = key
        self.sinks: tuple[Sink, Sink] | None = None
        self.has_hung_up = False

    @property
    def name(self) -> str:
        return f"PE {self.number} (pid {self.pid} on {self.host.name})"

    @property
    def is_dying(self) -> bool:
        return self.running and self.has_hung_up

    def describe_end(self) -> str:
        if self.host.loss is not None:
            return f"is lost with its host: {self.host.loss}"
        return super().describe_end()

    def bind(self, cpus: set[int]) -> None:
        """It keeps its CPUs, which are those of its host."""

    def send_signal(self, number: int, *, if_handled: bool = False) -> None:
        if self.running:
            payload = struct.pack("<iiB", number, self.connected_pid or 0, if_handled)
            self.host.send(Kind.SIGNAL, self.key, payload)


class RemoteConnection(Connection):
    """A connection of a PE to the launcher that the agent of its host passes on."""

    def __init__(self, host: RemoteHost, channel: int, pid: int) -> None:
        super().__init__(pid, os.geteuid())
        self._host = host
        self._channel = channel
        self._arrived = bytearray()
        self._has_ended = False
        self._is_open = True

    @property
    def is_open(self) -> bool:
        return self._is_open

    def feed(self, data: bytes) -> None:
        """What the PE has sent."""
        self._arrived += data

    def end(self) -> None:
        """The PE has closed it."""
        self._has_ended = True

    def _read(self) -> bytes | None:
        if self._arrived:
            data = bytes(self._arrived)
            self._arrived.clear()
            return data
        return b"" if self._has_ended else None

    def send(self, frame: bytes) -> None:
        if not self.at_end:
            self._host.send(Kind.DATA, self._channel, frame)

    def watch(self, selector: selectors.BaseSelector) -> None:
        """The host's link is watched."""

    def close(self, selector: selectors.BaseSelector) -> None:
        self.at_end = True
        self._is_open = False
        self._host.forget_channel(self._channel)


def _free_rank(pes: Sequence[Pe]) -> int:
    """The lowest local rank that no running PE of a host has."""
    taken = {pe.local_rank for pe in pes if pe.running}
    return next(rank for rank in range(len(taken) + 1) if rank not in taken)


class RemoteHost:
    """A host on which an agent starts PEs. It is reached from the first PE on."""

    def __init__(self, hosts: Hosts, slots: HostSlots) -> None:
        self.name = slots.name
        self.slots = slots.slots
        self.pes: list[RemotePe] = []
        self.loss: str | None = None  # why it is lost
        self.is_unfit = False  # a PE could not be started there
        self._hosts = hosts
        self._process: subprocess.Popen[bytes] | None = None
        self._decoder = Decoder(GREETING)
        self._outgoing = Outgoing()
        self._channels: dict[int, RemoteConnection] = {}
        self._next_key = 1
        self._heard_at = 0.0
        self._reached_at = 0.0
        self._is_held = False

    @property
    def num_running(self) -> int:
        """How many PEs it has."""
        return sum(pe.running for pe in self.pes)

    @property
    def is_joined(self) -> bool:
        """Whether its agent has spoken."""
        return self._decoder.is_greeted

    @property
    def is_running(self) -> bool:
        """Whether its remote shell runs."""
        return self._process is not None and self._process.returncode is None

    # --- the agent

    def _reach(self) -> None:
        ours, theirs = socket.socketpair()
        agent = [sys.executable, "-c", _AGENT.format(path=str(_PACKAGES))]
        command = os.environ.get(SHELL_VARIABLE) or _SHELL
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [*shlex.split(command), self.name, f"exec {shlex.join(agent)}"],
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    # Not the launcher's own: ssh may make its descriptor one that does not block.
                    stderr=subprocess.PIPE,
                    # Ctrl-C in a terminal is for the job, which ends the agent.
                    start_new_session=True,
                    preexec_fn=self._hosts.before_exec,
                )
            except (OSError, ValueError) as error:
                ours.close()
                raise UsageError(f"{command}: {error}; {SHELL_VARIABLE} is the command for ssh") from None
        ours.setblocking(False)
        self._link = ours
        self._reached_at = time.monotonic()
        self._hosts.selector.register(ours, selectors.EVENT_READ, self._on_link)
        assert self._process.stderr is not None
        self._hosts.selector.register(self._process.stderr, selectors.EVENT_READ, self._on_words)
        self.send(Kind.JOB, 0, json.dumps(self._hosts.job_of(self)).encode())

    def _on_words(self) -> None:
        """The remote shell, or the agent, says something."""
        assert self._process is not None and self._process.stderr is not None
        words = os.read(self._process.stderr.fileno(), _READ_BYTES)
        if words:
            self._hosts.own_sinks()[1].put(words)
        else:
            self._hosts.selector.unregister(self._process.stderr)
            self._process.stderr.close()

    def reaped(self, pid: int, status: int) -> bool:
        """Whether the process that has ended is its remote shell."""
        if self._process is None or self._process.pid != pid:
            return False
        self._process.returncode = status
        return True

    def send(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
        """Sends its agent a message, now or later. Does nothing if the host is lost."""
        if self.loss is not None or self._process is None:
            return
        self._outgoing.put(message(kind, number, payload))
        self._flush()

    def _flush(self) -> None:
        while len(self._outgoing) > 0:
            try:
                self._outgoing.taken(self._link.send(self._outgoing.next_part(), socket.MSG_NOSIGNAL))
            except BlockingIOError:
                break
            except OSError:
                return  # its end is read
        self._watch()

    def _watch(self) -> None:
        events = 0 if self._is_held else selectors.EVENT_READ
        if len(self._outgoing) > 0:
            events |= selectors.EVENT_WRITE
        selector = self._hosts.selector
        if self._link in selector.get_map():
            selector.unregister(self._link)
        if events:
            selector.register(self._link, events, self._on_link)

    def _on_link(self) -> None:
        if self.loss is not None or not self.is_linked:
            return
        if len(self._outgoing) > 0:
            self._flush()
        if not self._is_held:
            self._read()

    @property
    def is_linked(self) -> bool:
        """Whether its link is open."""
        return self._process is not None and self._link.fileno() >= 0

    def _read(self) -> None:
        try:
            data = self._link.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lose(self._how_shell_ended())
            return
        self._heard_at = time.monotonic()
        try:
            for kind, number, payload in self._decoder.feed(data):
                self._handle(kind, number, payload)
        except LinkError as error:
            self.lose(str(error))

    def _how_shell_ended(self) -> str:
        assert self._process is not None
        try:
            status = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return "its connection has ended"
        words = f"; it said: {self._decoder.noise}" if self._decoder.noise else ""
        return f"the remote shell {describe_exit(status)}{words}"

    def lose(self, why: str) -> None:
        """Nothing is heard of it any more: its PEs are lost."""
        self.loss = why
        self._close_link()
        lost = [pe for pe in self.pes if pe.running]
        for pe in lost:
            self._finish_output(pe)
        if not self.is_joined:
            self._hosts.owner.cannot_start(f"the host {self.name} cannot be reached: {why}", lost)
            return
        for connection in list(self._channels.values()):
            connection.end()
        self._hosts.owner.host_lost(lost)
        for connection in list(self._channels.values()):
            self._hosts.service.read(connection)  # of processes that are no PEs

    def _close_link(self) -> None:
        if not self.is_linked:
            return
        if self._link in self._hosts.selector.get_map():
            self._hosts.selector.unregister(self._link)
        self._link.close()

    def tick(self, now: float) -> None:
        """It is time for a PING."""
        if self.loss is not None or not self.is_linked:
            return
        limit_s, since = (SILENCE_S, self._heard_at) if self.is_joined else (GREETING_S, self._reached_at)
        if now - since > limit_s and not self._is_held:
            if self._process is not None:
                self._process.kill()
            self.lose(f"nothing was heard of it for {limit_s:g} s")
        elif self.is_joined:
            self.send(Kind.PING)

    def forgive(self, now: float) -> None:
        """The launcher itself was stopped until now."""
        self._heard_at = self._reached_at = now

    def close(self, deadline: float) -> None:
        """The job is over: the agent ends, and with it what is left of its PEs."""
        if self._process is None:
            return
        self._close_link()
        if self._process.returncode is not None:
            return
        try:
            self._process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    # --- PEs

    def start(self, number: int, incarnation: int, num_pes: int | None, output: Output) -> RemotePe:
        """Has its agent start a PE. That it cannot be started is told to the owner later."""
        if self._process is None:
            self._reach()
        key = self._next_key
        self._next_key += 1
        local_rank = _free_rank(self.pes)
        pe = RemotePe(self, key, number, incarnation, local_rank)
        pe.sinks = self._hosts.sinks_of(output.open(number))
        output.close_opened()
        self.pes.append(pe)
        process = {
            "number": number,
            "incarnation": incarnation,
            "num_pes": num_pes,
            "local_rank": local_rank,
        }
        self.send(Kind.START, key, json.dumps(process).encode())
        return pe

    def _finish_output(self, pe: RemotePe) -> None:
        for sink in pe.sinks or ():
            sink.finish()

    def _pe(self, key: int) -> RemotePe | None:
        return next((pe for pe in self.pes if pe.key == key and pe.running), None)

    def _handle(self, kind: Kind, number: int, payload: bytes) -> None:
        if kind is Kind.CONNECT and len(payload) == 4:
            self._channels[number] = RemoteConnection(self, number, struct.unpack("<I", payload)[0])
        elif kind in (Kind.DATA, Kind.CLOSE):
            if (connection := self._channels.get(number)) is not None:
                connection.feed(payload)
                if kind is Kind.CLOSE:
                    connection.end()
                    if isinstance(connection.pe, RemotePe):
                        connection.pe.has_hung_up = True
                self._hosts.service.read(connection)
        elif kind is Kind.SAY:
            self._hosts.owner.said_elsewhere(f"{self.name}: {payload.decode(errors='replace')}")
        elif (pe := self._pe(number)) is not None:
            self._handle_of_pe(pe, kind, payload)

    def _handle_of_pe(self, pe: RemotePe, kind: Kind, payload: bytes) -> None:
        if kind is Kind.STARTED and len(payload) == 4:
            (pe.pid,) = struct.unpack("<I", payload)
        elif kind is Kind.FAILED:
            self.is_unfit = True
            self._finish_output(pe)
            self._hosts.owner.cannot_start(f"{self.name}: {payload.decode(errors='replace')}", [pe])
        elif kind is Kind.EXITED and len(payload) == 4:
            self._finish_output(pe)
            self._hosts.owner.exited_elsewhere(pe, struct.unpack("<i", payload)[0])
        elif kind in (Kind.STDOUT, Kind.STDERR) and pe.sinks is not None:
            sink = pe.sinks[kind is Kind.STDERR]
            sink.put(payload)
            if sink.is_full and not self._is_held:
                # The PEs of this host wait for the reader, as they do on the launcher's host.
                self._is_held = True
                sink.call_when_drained(self._resume)
                self._watch()

    def _resume(self) -> None:
        self._is_held = False
        self._heard_at = time.monotonic()
        if self.loss is None and self.is_linked:
            self._watch()

    def forget_channel(self, channel: int) -> None:
        """The launcher has closed a connection."""
        if self._channels.pop(channel, None) is not None:
            self.send(Kind.CLOSE, channel)


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
        self._remote = [None if host.is_here else RemoteHost(self, host) for host in named]
        self._here: list[Pe] = []
        self._tick_at: float | None = None
        self._sinks: tuple[Sink, Sink] | None = None
        self._pe_sinks: list[Sink] = []

    def begin(
        self,
        selector: selectors.BaseSelector,
        service: BootstrapService,
        owner: Owner,
        job: Mapping[str, Any],
        before_exec: Callable[[], None],
    ) -> None:
        """`job`: what agents need to know, see `Agent.begin`.

        `before_exec` runs in remote shells between fork and exec.
        """
        self.selector = selector
        self.service = service
        self.owner = owner
        self.before_exec = before_exec
        self._job = job
        self._tick_at = time.monotonic() + PING_S

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
        if now > self._tick_at + PING_S:
            for host in self._hosts():
                host.forgive(now)
        self._tick_at = now + PING_S
        for host in self._hosts():
            host.tick(now)

    def _hosts(self) -> list[RemoteHost]:
        return [host for host in self._remote if host is not None]

    def job_of(self, host: RemoteHost) -> dict[str, Any]:
        """The job as its agent needs to know it."""
        begins_with = self._begin[self._remote.index(host)]
        return {**self._job, "given": self._given, "num_pes": begins_with or host.slots}

    def place(self) -> RemoteHost | None:
        """Where the next PE is started; None: on the launcher's host.

        The first host with room; without room, the host that has the least too many.

        Raises:
            UsageError: all hosts are lost.
        """
        living = [
            i for i, host in enumerate(self._remote) if host is None or not (host.loss or host.is_unfit)
        ]
        if not living:
            raise UsageError("no host is left")
        room = [self._named[i].slots - self._num_running(i) for i in living]
        first = next((k for k, free in enumerate(room) if free > 0), None)
        return self._remote[living[first if first is not None else room.index(max(room))]]

    def _num_running(self, index: int) -> int:
        host = self._remote[index]
        return sum(pe.running for pe in self._here) if host is None else host.num_running

    def started_here(self, pe: Pe) -> None:
        """A PE has been started on the launcher's host."""
        self._here.append(pe)

    @property
    def free_rank_here(self) -> int:
        """The local rank of the next PE on the launcher's host."""
        return _free_rank(self._here)

    def sinks_of(self, opened: tuple[int | None, int | None]) -> tuple[Sink, Sink]:
        """Where a PE's output goes: to the descriptors, or to the launcher's own."""
        out, err = opened
        if out is None or err is None:
            return self.own_sinks()
        first = Sink(self.selector, os.dup(out), is_owner=True)
        second = first if err == out else Sink(self.selector, os.dup(err), is_owner=True)
        self._pe_sinks = [sink for sink in self._pe_sinks if not sink.closed] + [first, second]
        return first, second

    def own_sinks(self) -> tuple[Sink, Sink]:
        """The launcher's own stdout and stderr."""
        if self._sinks is None:
            self._sinks = (Sink(self.selector, 1), Sink(self.selector, 2))
        return self._sinks

    @property
    def is_pending(self) -> bool:
        """Whether output of PEs is still to be written."""
        return any(sink.is_pending for sink in (*(self._sinks or ()), *self._pe_sinks))

    def abandon_output(self) -> None:
        """Drops what is pending."""
        for sink in (*(self._sinks or ()), *self._pe_sinks):
            sink.abandon()

    def reaped(self, pid: int, status: int) -> bool:
        """Whether a process that has ended is the remote shell of a host."""
        return any(host.reaped(pid, status) for host in self._hosts())

    def has_children(self) -> bool:
        """Whether a remote shell runs."""
        return any(host.is_running for host in self._hosts())

    def pause(self) -> None:
        """The launcher is about to be stopped."""
        for host in self._hosts():
            host.send(Kind.PAUSE)

    def kill_pes(self) -> None:
        """The PEs of other hosts count as killed; `close` sees to it."""
        for host in self._hosts():
            for pe in host.pes:
                if pe.running:
                    pe.exit_status = -signal.SIGKILL

    def close(self) -> None:
        """Ends the agents."""
        deadline = time.monotonic() + _CLOSE_S
        for host in self._hosts():
            host.close(deadline)


class HostsStarter(Starter):
    """Starts PEs on the hosts of a job. Its parameters are those for the PEs on the launcher's host."""

    def __init__(self, hosts: Hosts, output: Output, *arguments: Any) -> None:
        argvs, environment, signals, time_limit, cpus = arguments
        super().__init__(argvs, environment, signals, output, time_limit, cpus)
        self._hosts = hosts

    def start(
        self, number: int, incarnation: int = 0, num_pes: int | None = None, local_rank: int | None = None
    ) -> Pe:
        host = self._hosts.place()
        if host is not None:
            return host.start(number, incarnation, num_pes, self._output)
        pe = super().start(number, incarnation, num_pes, local_rank=self._hosts.free_rank_here)
        self._hosts.started_here(pe)
        return pe
