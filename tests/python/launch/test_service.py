"""The launcher's side of the bootstrap, driven one turn of its owner's loop at a time."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from weft.launch.connection import Connection
from weft.launch.frames import HEADER, FrameType, encode
from weft.launch.losses.recovery import Recovery
from weft.launch.processes import Pe
from weft.launch.service import BootstrapService, Events

HELLO_OF_PE_0 = encode(FrameType.HELLO, bytes(4))


class JoinedPes(Events):
    """Remembers who has joined, and who has stopped."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.have_stopped: list[int] = []

    def joined(self, pe: Pe) -> None:
        """A PE has connected."""
        self.numbers.append(pe.number)

    def stopped(self, pe: Pe) -> None:
        """A PE waits for the others before it begins a new program."""
        self.have_stopped.append(pe.number)


class OnePe:
    """A service of one PE, or of a few."""

    def __init__(self, pid: int, recovery: Recovery | None = None, num_pes: int = 1) -> None:
        self.pes = [Pe(number, pid) for number in range(num_pes)]
        self.pe = self.pes[0]
        self.events = JoinedPes()
        self.selector = selectors.DefaultSelector()
        self.service = BootstrapService(self.selector, num_pes, self.pes, self.events, recovery)

    def connect(self) -> socket.socket:
        connected = socket.socket(socket.AF_UNIX)
        connected.connect(self.service.path)
        return connected

    def handle(self, ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        """What `Job` does with what a selector answered."""
        for key, events in ready:
            if isinstance(key.data, Connection):
                self.service.handle(key.data, events)
            else:
                key.data()

    def close(self) -> None:
        self.service.close()
        self.selector.close()


@pytest.fixture
def one_pe() -> Iterator[OnePe]:
    made = OnePe(os.getpid())
    yield made
    made.close()


def test_who_connects_in_the_turn_in_which_the_last_pe_joins_finds_nobody(one_pe: OnePe) -> None:
    with one_pe.connect() as joining:
        one_pe.handle(one_pe.selector.select())
        joining.sendall(HELLO_OF_PE_0)
        with one_pe.connect() as late:
            ready = one_pe.selector.select()
            # Its answer names the listener too, which the handling of the hello closes.
            ready.sort(key=lambda answer: not isinstance(answer[0].data, Connection))
            assert len(ready) == 2
            one_pe.handle(ready)
            assert one_pe.events.numbers == [0]
            with pytest.raises(ConnectionResetError):
                late.recv(1)
        assert joining.recv(1000)[: HEADER.size] == HEADER.pack(b"WFT3", FrameType.WELCOME, 4)


# Joins as PE 0 and leaves its connection to a child, which ends with this program's input.
LEAVES_A_CHILD = """\
import socket, subprocess, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(bytes.fromhex(sys.argv[2]))
connection.recv(1)
subprocess.Popen(["cat"], pass_fds=[connection.fileno()])
"""


def test_a_reaped_process_is_sent_no_signal_although_its_child_holds_the_connection(
    one_pe: OnePe, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", LEAVES_A_CHILD, one_pe.service.path, HELLO_OF_PE_0.hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        one_pe.pe.pid = process.pid
        while not one_pe.events.numbers:
            one_pe.handle(one_pe.selector.select())
        one_pe.pe.exit_status = process.wait()
        one_pe.service.read(one_pe.service.connections[0])
        assert not one_pe.service.connections[0].at_end
        sent: list[tuple[int, int]] = []
        monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
        one_pe.pe.send_signal(15)
        assert sent == []
