"""When an agent takes its launcher for gone. Time is moved, not waited for."""

from __future__ import annotations

import selectors
import socket

import pytest

from weft.launch.hosts.agent import Agent
from weft.launch.hosts.link import AGENT_SILENCE_S, SILENCE_S, Kind


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


def test_pes_have_ended_before_others_take_their_places() -> None:
    assert AGENT_SILENCE_S < SILENCE_S
