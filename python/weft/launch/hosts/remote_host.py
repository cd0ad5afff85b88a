"""A host on which an agent starts PEs, as the launcher sees it.

Threads: the launcher's.
"""

from __future__ import annotations

import json
import selectors
import signal
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from weft.launch.hosts.agent_link import AgentLink
from weft.launch.hosts.host_list import HostSlots
from weft.launch.hosts.link import Kind
from weft.launch.hosts.remote_pe import RemoteConnection, RemotePe
from weft.launch.output import Sink
from weft.launch.processes import Pe
from weft.launch.service import BootstrapService


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


@dataclass
class Surroundings:
    """What all hosts of a job share.

    `before_exec` runs in remote shells between fork and exec. `on_words` gets what shells and agents write to
    stderr.
    """

    selector: selectors.BaseSelector
    service: BootstrapService
    owner: Owner
    before_exec: Callable[[], None]
    on_words: Callable[[bytes], None]


def free_rank(pes: Sequence[Pe]) -> int:
    """The lowest local rank that no running PE of a host has."""
    taken = {pe.local_rank for pe in pes if pe.running}
    return next(rank for rank in range(len(taken) + 1) if rank not in taken)


class RemoteHost:
    """It is reached when the first PE is started there."""

    def __init__(self, slots: HostSlots) -> None:
        self.name = slots.name
        self.pes: list[RemotePe] = []
        self.loss: str | None = None  # why it is lost
        self.is_unfit = False  # a PE could not be started there
        self.link: AgentLink | None = None
        self._channels: dict[int, RemoteConnection] = {}
        self._next_key = 1

    def reach(self, around: Surroundings, job: dict[str, Any]) -> None:
        """Starts its agent. `job`: see `Agent.begin`.

        Raises:
            UsageError: the remote shell cannot be started.
        """
        self._around = around
        self.link = AgentLink(
            self.name,
            around.selector,
            before_exec=around.before_exec,
            on_message=self._handle,
            on_end=self._lose,
            on_words=around.on_words,
        )
        self.send(Kind.JOB, 0, json.dumps(job).encode())

    def send(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
        """Sends its agent a message, now or later. Does nothing if it is not reached, or lost."""
        if self.link is not None:
            self.link.send(kind, number, payload)

    def start(self, number: int, incarnation: int, num_pes: int | None, sinks: tuple[Sink, Sink]) -> RemotePe:
        """Has its agent start a PE. That it cannot be started is told to the owner later."""
        self.pes = [pe for pe in self.pes if pe.running]
        pe = RemotePe(self, self._next_key, sinks, number, incarnation, free_rank(self.pes))
        self._next_key += 1
        self.pes.append(pe)
        process = {
            "number": number,
            "incarnation": incarnation,
            "num_pes": num_pes,
            "local_rank": pe.local_rank,
        }
        self.send(Kind.START, pe.key, json.dumps(process).encode())
        return pe

    def kill_pes(self) -> None:
        """Its PEs count as killed: the end of its agent sees to it."""
        for pe in self.pes:
            if pe.running:
                pe.exit_status = -signal.SIGKILL

    def forget_channel(self, channel: int) -> None:
        """The launcher has closed a connection."""
        if self._channels.pop(channel, None) is not None:
            self.send(Kind.CLOSE, channel)

    def _lose(self, why: str) -> None:
        self.loss = why
        lost = [pe for pe in self.pes if pe.running]
        for pe in lost:
            self._finish_output(pe)
        if self.link is not None and not self.link.is_greeted:
            self._around.owner.cannot_start(
                f"the host {self.name} cannot be reached: {why}. ssh must enter it without a question, and "
                "it must have this Python and Weft at the same paths",
                lost,
            )
            return
        for connection in list(self._channels.values()):
            connection.end()
        self._around.owner.host_lost(lost)
        for connection in list(self._channels.values()):
            self._around.service.read(connection)  # of processes that are no PEs

    def _finish_output(self, pe: RemotePe) -> None:
        for sink in pe.sinks:
            sink.finish()

    def _handle(self, kind: Kind, number: int, payload: bytes) -> None:
        if kind is Kind.CONNECT and len(payload) == 4:
            self._channels[number] = RemoteConnection(self, number, struct.unpack("<I", payload)[0])
        elif kind in (Kind.DATA, Kind.CLOSE):
            if (connection := self._channels.get(number)) is not None:
                connection.feed(payload)
                if kind is Kind.CLOSE:
                    connection.end()
                self._around.service.read(connection)
        elif kind is Kind.SAY:
            self._around.owner.said_elsewhere(f"{self.name}: {payload.decode(errors='replace')}")
        elif (pe := next((pe for pe in self.pes if pe.key == number and pe.running), None)) is not None:
            self._handle_of_pe(pe, kind, payload)

    def _handle_of_pe(self, pe: RemotePe, kind: Kind, payload: bytes) -> None:
        if kind is Kind.STARTED and len(payload) == 4:
            (pe.pid,) = struct.unpack("<I", payload)
        elif kind is Kind.FAILED:
            self.is_unfit = True
            self._finish_output(pe)
            self._around.owner.cannot_start(f"{self.name}: {payload.decode(errors='replace')}", [pe])
        elif kind is Kind.EXITED and len(payload) == 4:
            self._finish_output(pe)
            self._around.owner.exited_elsewhere(pe, struct.unpack("<i", payload)[0])
        elif kind in (Kind.STDOUT, Kind.STDERR):
            sink = pe.sinks[kind is Kind.STDERR]
            sink.put(payload)
            if sink.is_full and self.link is not None and not self.link.is_held:
                # The PEs of this host wait for the reader, as they do on the launcher's host.
                self.link.hold(True)
                sink.call_when_drained(self._resume)

    def _resume(self) -> None:
        if self.link is not None:
            self.link.hold(False)
