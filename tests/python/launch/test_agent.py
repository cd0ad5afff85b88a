"""An agent without a launcher: when it takes that for gone, and what it signals. Time is moved on."""

from __future__ import annotations

import selectors
import signal
import socket
import struct
import subprocess

import pytest

from weft.launch.hosts.agent import Agent, _Channel
from weft.launch.hosts.link import AGENT_SILENCE_S, SILENCE_S, Kind
from weft.launch.hosts.remote_pe import RemotePe
from weft.launch.output import Sink


@pytest.mark.parametrize("paused", [False, True])
def test_an_agent_ends_if_its_launcher_is_silent_unless_that_was_announced(paused: bool) -> None:
    agent = Agent(-1, -1)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")  # a turn does not wait
        agent._selector.register(ours, selectors.EVENT_READ, lambda: None)
        agent._turn()
        assert not agent._is_done
        if paused:
            agent._handle(Kind.PAUSE, 0, b"")
        agent._heard_at -= 2 * AGENT_SILENCE_S
        agent._turn()
        assert agent._is_done is not paused


def test_a_program_is_signalled_whose_wrapper_has_ended() -> None:
    agent = Agent(-1, -1)
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen(["cat"], stdin=subprocess.PIPE) as program:
        for number in (signal.SIGTERM, signal.SIGKILL):
            agent._handle(Kind.SIGNAL, 3, struct.pack("<iiB", number, program.pid, False))
            # The first signal is for a process that is not connected.
            agent._channels[1] = _Channel(ours, program.pid)
        assert program.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("connected_pid", "exit_status", "is_sent"),
    [(None, None, True), (20, None, True), (None, -9, False), (10, -9, False), (20, -9, True)],
)
def test_the_launcher_signals_what_runs_on_another_host(
    connected_pid: int | None, exit_status: int | None, is_sent: bool
) -> None:
    sent: list[bytes] = []

    class Host:
        name = "one"
        loss = None

        def send(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
            assert (kind, number) == (Kind.SIGNAL, 3)
            sent.append(payload)

        def forget_channel(self, channel: int) -> None:
            raise AssertionError

    sink = Sink(selectors.DefaultSelector(), 1)
    pe = RemotePe(Host(), 3, (sink, sink), 0, 0, 0)
    pe.pid, pe.connected_pid, pe.exit_status = 10, connected_pid, exit_status
    pe.send_signal(signal.SIGKILL)
    assert sent == ([struct.pack("<iiB", signal.SIGKILL, connected_pid or 0, False)] if is_sent else [])


def test_pes_have_ended_before_others_take_their_places() -> None:
    assert AGENT_SILENCE_S < SILENCE_S
