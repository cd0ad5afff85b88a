"""When the link to an agent ends. A shell stands in for ssh and the agent; time is given to `tick`."""

from __future__ import annotations

import selectors
import time
from collections.abc import Iterator

import pytest

from weft.launch.hosts.agent_link import SHELL_VARIABLE, AgentLink
from weft.launch.hosts.link import GREETING, GREETING_S, SILENCE_S

GREETS = f"sh -c 'echo Welcome; echo {GREETING.decode().strip()}; exec sleep 60'"


class End:
    """Why the link has ended."""

    why: str | None = None


@pytest.fixture
def ended() -> End:
    return End()


@pytest.fixture
def selector() -> Iterator[selectors.BaseSelector]:
    with selectors.DefaultSelector() as selector:
        yield selector


@pytest.fixture
def connect(selector: selectors.BaseSelector, ended: End, monkeypatch: pytest.MonkeyPatch):
    """connect(command): the link over that remote shell, whose greeting has come if it has one."""
    links: list[AgentLink] = []

    def begin(command: str) -> AgentLink:
        monkeypatch.setenv(SHELL_VARIABLE, command)

        def on_end(why: str) -> None:
            ended.why = why

        link = AgentLink(
            "host",
            selector,
            before_exec=lambda: None,
            on_message=lambda *message: None,
            on_end=on_end,
            on_words=lambda words: None,
        )
        links.append(link)
        return link

    yield begin
    for link in links:
        link.close(0)


def run_until(selector: selectors.BaseSelector, condition) -> None:
    while not condition():
        for key, _ in selector.select(60) or pytest.fail("nothing happens"):
            key.data()


def test_an_agent_that_is_silent_for_too_long_is_lost(connect, selector, ended: End) -> None:
    before = time.monotonic()
    link = connect(GREETS)
    run_until(selector, lambda: link.is_greeted)
    link.tick(before + SILENCE_S - 1)
    assert ended.why is None
    link.tick(time.monotonic() + SILENCE_S + 1)
    assert ended.why == "nothing was heard of it for 15 s"
    assert not link.is_open


def test_a_launcher_that_was_stopped_takes_no_agent_for_lost(connect, selector, ended: End) -> None:
    link = connect(GREETS)
    run_until(selector, lambda: link.is_greeted)
    later = time.monotonic() + 10 * SILENCE_S
    link.forgive(later)
    link.tick(later)
    assert ended.why is None


def test_a_slow_reader_of_the_launcher_takes_no_agent_for_lost(connect, selector, ended: End) -> None:
    link = connect(GREETS)
    run_until(selector, lambda: link.is_greeted)
    link.hold(True)
    link.tick(time.monotonic() + 10 * SILENCE_S)
    assert ended.why is None


def test_a_shell_that_never_greets_is_lost(connect, ended: End) -> None:
    link = connect("sh -c 'exec sleep 60'")
    link.tick(time.monotonic() + GREETING_S + 1)
    assert ended.why == "nothing was heard of it for 60 s"


def test_a_shell_that_ends_is_told_with_its_words(connect, selector, ended: End) -> None:
    connect("sh -c 'echo no such host; exit 255'")
    run_until(selector, lambda: ended.why is not None)
    assert ended.why == "the remote shell exited with code 255; it said: no such host"
