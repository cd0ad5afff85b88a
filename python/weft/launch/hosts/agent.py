"""Starts PEs on this host for a launcher on another one, and passes on what they write and say.

The launcher runs it with a remote shell, whose stdin and stdout are the link (see link.py). It is what
`weft run` is on one host: the parent of the PEs, with the socket that they connect to and the folder of their
shared memory. When the link ends, or the launcher is silent for too long, the PEs are killed.

One thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.launch.binding import cpus_of, shares
from weft.launch.command import UsageError
from weft.launch.connection import peer_of
from weft.launch.environment import host_environment
from weft.launch.hosts.link import (
    AGENT_SILENCE_S,
    GREETING,
    Decoder,
    Kind,
    LinkError,
    Outgoing,
    message,
)
from weft.launch.leftovers import SegmentFolder
from weft.launch.listener import Listener
from weft.launch.output import MOST_LEFT_BYTES, Output
from weft.launch.processes import DESCRIPTORS_BESIDE_PES, Pe, Starter, reserve_descriptors
from weft.launch.signals import SignalFd
from weft.launch.topology import usable_cores

#: Of the environment of a PE, these are the host's own.
_OF_THE_HOST = (
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "HOSTNAME",
    "LOGNAME",
    "SHELL",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "TMPDIR",
    "USER",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
)
_READ_BYTES = 64 << 10
# If so much waits for the launcher, nothing more is read from the PEs.
_MOST_PENDING_BYTES = 1 << 20


class _Pipes(Output):
    """Opens two pipes for each PE; their reading ends are taken by the agent."""

    def __init__(self) -> None:
        self.ours: tuple[int, int] = (-1, -1)
        self._theirs: list[int] = []

    def open(self, pe: int) -> tuple[int | None, int | None]:
        (out, their_out), (err, their_err) = os.pipe(), os.pipe()
        self.ours = (out, err)
        self._theirs = [their_out, their_err]
        return their_out, their_err

    def close_opened(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())


class _Process:
    """A PE and its two pipes, by the kind of message that carries them."""

    def __init__(self, pe: Pe, pipes: Mapping[Kind, int]) -> None:
        self.pe = pe
        self.pipes = dict(pipes)


@dataclass
class _Channel:
    """The connection of a process, which is a PE or the program behind a wrapper."""

    socket: socket.socket
    pid: int
    outgoing: Outgoing = field(default_factory=Outgoing)


class Agent:
    """Serves one launcher on the descriptors of a link."""

    def __init__(self, link_in: int, link_out: int) -> None:
        self._in = link_in
        self._out = link_out
        self._selector = selectors.DefaultSelector()
        self._decoder = Decoder()
        self._outgoing = Outgoing()
        self._is_writing = False
        self._is_held = False  # PEs are not read from, because the launcher does not read
        self._processes: dict[int, _Process] = {}
        self._channels: dict[int, _Channel] = {}
        self._next_channel = 1
        self._heard_at = time.monotonic()
        self._is_paused = False
        self._starter: Starter | None = None
        self._obstacle = "a process is to be started before the job is known"
        self._pipes = _Pipes()
        self._is_done = False

    def run(self) -> None:
        """Returns when the launcher has gone or has ended the job."""
        signals = SignalFd([signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
        self._signals = signals
        self._listener = Listener(backlog=64)
        self._segments = SegmentFolder()
        try:
            os.set_blocking(self._in, False)
            os.set_blocking(self._out, False)
            self._selector.register(self._in, selectors.EVENT_READ, self._on_link)
            self._selector.register(signals, selectors.EVENT_READ, self._on_signals)
            self._selector.register(self._listener.socket, selectors.EVENT_READ, self._accept)
            self._send_bytes(GREETING)
            while not self._is_done:
                self._turn()
        finally:
            for process in self._processes.values():
                process.pe.send_signal(signal.SIGKILL)
            for process in self._processes.values():
                if process.pe.running:
                    os.waitpid(process.pe.pid, 0)
            self._segments.close()
            self._listener.close()

    def _turn(self) -> None:
        silence = None
        if not self._is_paused:
            silence = self._heard_at + AGENT_SILENCE_S - time.monotonic()
            if silence <= 0:
                self._is_done = True
                return
        for key, _ in self._selector.select(silence):
            key.data()

    # --- the link

    def _on_link(self) -> None:
        try:
            data = os.read(self._in, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._is_done = True
            return
        self._heard_at = time.monotonic()
        self._is_paused = False
        for kind, number, payload in self._decoder.feed(data):
            self._handle(kind, number, payload)

    def _handle(self, kind: Kind, number: int, payload: bytes) -> None:
        if kind is Kind.JOB:
            self.begin(json.loads(payload))
        elif kind is Kind.START:
            self._start(number, json.loads(payload))
        elif kind is Kind.SIGNAL:
            self._signal(number, payload)
        elif kind is Kind.DATA and number in self._channels:
            self._channels[number].outgoing.put(payload)
            self._flush_channel(number)
        elif kind is Kind.CLOSE:
            self._close_channel(number)
        elif kind is Kind.PING:
            self._send(Kind.PONG)
        elif kind is Kind.PAUSE:
            self._is_paused = True

    def _send(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
        self._send_bytes(message(kind, number, payload))

    def _send_bytes(self, data: bytes) -> None:
        self._outgoing.put(data)
        if self._is_writing:
            self._hold(len(self._outgoing) > _MOST_PENDING_BYTES)
        else:
            self._flush()

    def _flush(self) -> None:
        while len(self._outgoing) > 0:
            try:
                self._outgoing.taken(os.write(self._out, self._outgoing.next_part()))
            except BlockingIOError:
                break
            except OSError:
                self._is_done = True
                return
        wants = len(self._outgoing) > 0
        if wants and not self._is_writing:
            self._selector.register(self._out, selectors.EVENT_WRITE, self._flush)
        elif self._is_writing and not wants:
            self._selector.unregister(self._out)
        self._is_writing = wants
        self._hold(len(self._outgoing) > _MOST_PENDING_BYTES)

    def _hold(self, is_held: bool) -> None:
        if is_held == self._is_held:
            return
        self._is_held = is_held
        for number, process in self._processes.items():
            for kind, fd in process.pipes.items():
                if is_held:
                    self._selector.unregister(fd)
                else:
                    self._watch_pipe(number, kind, fd)

    # --- processes

    def begin(self, job: Mapping[str, Any]) -> None:
        """Prepares for PEs. What stands in the way is the answer to each START.

        `job`: environment; the names in it that the user has given, which count; folder; programs, and which
        one each PE has; num_pes of this host; is_bound.
        """
        names = [name for name in _OF_THE_HOST if name not in job["given"]]
        own = {name: os.environ[name] for name in names if name in os.environ}
        shared = {name: value for name, value in job["environment"].items() if name not in names}
        environment = host_environment(
            {**shared, **own}, max(1, job["num_pes"]), self._segments.path, self._listener.path
        )
        try:
            os.chdir(job["folder"])
        except OSError as error:
            self._obstacle = (
                f"{job['folder']}: {error.strerror}; start the job in a folder that all hosts have"
            )
            return
        cpus = None
        if job["is_bound"] and job["num_pes"] > 0:
            parts = shares(usable_cores(os.sched_getaffinity(0)), job["num_pes"])
            cpus = cpus_of(parts)
        # The starter tells programs apart by their lists.
        argvs = [job["programs"][index] for index in job["program_of_pe"]]
        self._starter = Starter(argvs, environment, self._signals, self._pipes, None, cpus)

    def _start(self, number: int, process: Mapping[str, Any]) -> None:
        try:
            if self._starter is None:
                raise UsageError(self._obstacle)
            reserve_descriptors(4 * (len(self._processes) + 1) + DESCRIPTORS_BESIDE_PES)
            pe = self._starter.start(
                process["number"],
                process["incarnation"],
                process["num_pes"],
                local_rank=process["local_rank"],
            )
        except (UsageError, OSError) as error:
            self._send(Kind.FAILED, number, str(error).encode())
            return
        out, err = self._pipes.ours
        self._processes[number] = _Process(pe, {Kind.STDOUT: out, Kind.STDERR: err})
        for kind, fd in self._processes[number].pipes.items():
            os.set_blocking(fd, False)
            if not self._is_held:
                self._watch_pipe(number, kind, fd)
        self._send(Kind.STARTED, number, struct.pack("<I", pe.pid))

    def _watch_pipe(self, number: int, kind: Kind, fd: int) -> None:
        self._selector.register(fd, selectors.EVENT_READ, lambda: self._read_pipe(number, kind))

    def _read_pipe(self, number: int, kind: Kind) -> int:
        """Returns how many bytes have come; 0 if there are none now."""
        process = self._processes.get(number)
        fd = -1 if process is None else process.pipes.get(kind, -1)
        if process is None or fd < 0:
            return 0  # an event of before its end
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return 0
        if data:
            self._send(kind, number, data)
        else:
            self._close_pipe(process, kind)
        return len(data)

    def _close_pipe(self, process: _Process, kind: Kind) -> None:
        fd = process.pipes.pop(kind)
        with contextlib.suppress(KeyError):
            self._selector.unregister(fd)
        os.close(fd)

    def _signal(self, number: int, payload: bytes) -> None:
        signum, connected_pid, if_handled = struct.unpack("<iiB", payload)
        if (process := self._processes.get(number)) is not None:
            process.pe.connected_pid = connected_pid or None
            process.pe.send_signal(signum, if_handled=bool(if_handled))
        elif any(channel.pid == connected_pid for channel in self._channels.values()):
            # The PE has ended, and was a wrapper. Its program lives.
            Pe(number, connected_pid).send_signal(signum, if_handled=bool(if_handled))

    def _on_signals(self) -> None:
        for received in self._signals.read():
            if received.number is signal.SIGCHLD:
                self._reap()
            else:
                self._is_done = True

    def _reap(self) -> None:
        while any(process.pe.running for process in self._processes.values()):
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            for number, process in list(self._processes.items()):
                if process.pe.pid == pid and process.pe.running:
                    process.pe.exit_status = os.waitstatus_to_exitcode(status)
                    self._ended(number, process)

    def _ended(self, number: int, process: _Process) -> None:
        """Its last words and frames go before the word of its end."""
        for channel in list(self._channels):
            self._read_channel(channel)
        for kind in list(process.pipes):
            left = MOST_LEFT_BYTES
            while left > 0 and (size := self._read_pipe(number, kind)) > 0:
                left -= size
            if kind in process.pipes:
                self._close_pipe(process, kind)
        del self._processes[number]
        self._send(Kind.EXITED, number, struct.pack("<i", process.pe.exit_status or 0))

    # --- connections of PEs

    def _accept(self) -> None:
        while (accepted := self._listener.accept()) is not None:
            pid, uid = peer_of(accepted)
            if uid != os.geteuid():
                self._send(
                    Kind.SAY, 0, f"refused process {pid} of user {uid}: not the user of this job".encode()
                )
                accepted.close()
                continue
            accepted.setblocking(False)
            channel = self._next_channel
            self._next_channel += 1
            self._channels[channel] = _Channel(accepted, pid)
            self._selector.register(accepted, selectors.EVENT_READ, lambda c=channel: self._on_channel(c))
            self._send(Kind.CONNECT, channel, struct.pack("<I", pid))

    def _on_channel(self, channel: int) -> None:
        self._flush_channel(channel)
        self._read_channel(channel)

    def _read_channel(self, channel: int) -> None:
        while channel in self._channels:
            try:
                data = self._channels[channel].socket.recv(_READ_BYTES)
            except BlockingIOError:
                return
            except ConnectionError:
                data = b""
            if not data:
                self._close_channel(channel)
                self._send(Kind.CLOSE, channel)
                return
            self._send(Kind.DATA, channel, data)

    def _flush_channel(self, channel: int) -> None:
        if channel not in self._channels:
            return
        connection, outgoing = self._channels[channel].socket, self._channels[channel].outgoing
        while len(outgoing) > 0:
            try:
                outgoing.taken(connection.send(outgoing.next_part(), socket.MSG_NOSIGNAL))
            except BlockingIOError:
                break
            except ConnectionError:
                outgoing.taken(len(outgoing))  # its end is read
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if len(outgoing) > 0 else 0)
        self._selector.modify(connection, events, self._selector.get_key(connection).data)

    def _close_channel(self, channel: int) -> None:
        if (entry := self._channels.pop(channel, None)) is not None:
            self._selector.unregister(entry.socket)
            entry.socket.close()


def main() -> None:
    """Serves the launcher on stdin and stdout."""
    # What else this process prints goes to stderr, and its PEs have no terminal.
    link_in, link_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    try:
        Agent(link_in, link_out).run()
    except (UsageError, LinkError) as error:
        sys.stderr.write(f"weft run: {os.uname().nodename}: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
