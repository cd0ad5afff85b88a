"""A PE of another host as the launcher sees it, and its connection to the launcher."""

from __future__ import annotations

import os
import selectors
import struct
from typing import Protocol

from weft.launch.connection import Connection
from weft.launch.hosts.link import Kind
from weft.launch.output import Sink
from weft.launch.processes import Pe


class Host(Protocol):
    """What both need of their host. `loss`: why it is lost."""

    name: str
    loss: str | None

    def send(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
        """Sends its agent a message."""

    def forget_channel(self, channel: int) -> None:
        """The launcher has closed a connection."""


class RemotePe(Pe):
    """A PE of another host. Its `pid` is 0 until the host has told it.

    `key`: the agent's number of the process. `sinks`: where its stdout and stderr go.
    """

    def __init__(
        self, host: Host, key: int, sinks: tuple[Sink, Sink], number: int, incarnation: int, local_rank: int
    ) -> None:
        super().__init__(number, 0, incarnation=incarnation, local_rank=local_rank, is_child=False)
        self._host = host
        self.key = key
        self.sinks = sinks
        self.has_hung_up = False

    @property
    def name(self) -> str:
        return f"PE {self.number} (pid {self.pid} on {self._host.name})"

    @property
    def is_dying(self) -> bool:
        return self.running and self.has_hung_up

    def describe_end(self) -> str:
        if self._host.loss is not None:
            return f"is lost with its host: {self._host.loss}"
        return super().describe_end()

    def bind(self, cpus: set[int]) -> None:
        """It keeps its CPUs, which are those of its host."""

    def send_signal(self, number: int, *, if_handled: bool = False) -> None:
        # The program behind a wrapper may still be connected when the wrapper has ended.
        if self.running or self.connected_pid not in (None, self.pid):
            payload = struct.pack("<iiB", number, self.connected_pid or 0, if_handled)
            self._host.send(Kind.SIGNAL, self.key, payload)


class RemoteConnection(Connection):
    """A connection of a PE to the launcher that the agent of its host passes on."""

    def __init__(self, host: Host, channel: int, pid: int) -> None:
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
        if isinstance(self.pe, RemotePe):
            self.pe.has_hung_up = True

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
