"""How the end of a process is described, and where the launcher's socket is."""

from __future__ import annotations

import os
import signal
import stat
import tempfile
from pathlib import Path

import pytest

from weft.launch.command import UsageError
from weft.launch.listener import Listener
from weft.launch.processes import Pe, describe_exit, exit_code_of


@pytest.mark.parametrize(
    ("status", "sentence", "code"),
    [
        (0, "exited with code 0", 0),
        (3, "exited with code 3", 3),
        (-9, "was killed by signal 9 (SIGKILL)", 137),
        (-signal.SIGSEGV, "was killed by signal 11 (SIGSEGV)", 139),
        (-40, "was killed by signal 40 (a real-time signal)", 168),
        (
            -signal.SIGXFSZ,
            "was killed by signal 25 (SIGXFSZ): it wrote a file larger than `ulimit -f` allows",
            153,
        ),
    ],
)
def test_the_end_of_a_process(status: int, sentence: str, code: int) -> None:
    assert describe_exit(status) == sentence
    assert exit_code_of(status) == code


@pytest.mark.parametrize(
    ("connected_pid", "exit_status", "receivers"),
    [
        (None, None, {10}),
        (None, 0, set()),
        (10, None, {10}),
        (10, 0, set()),  # a child of it holds the connection
        (20, None, {10, 20}),  # behind a wrapper
        (20, 0, {20}),
    ],
)
@pytest.mark.parametrize("error", [None, ProcessLookupError, PermissionError])
def test_signals_go_to_who_is_not_reaped(
    monkeypatch: pytest.MonkeyPatch,
    connected_pid: int | None,
    exit_status: int | None,
    receivers: set[int],
    error: type[OSError] | None,
) -> None:
    signalled = set()

    def kill(pid: int, _: int) -> None:
        signalled.add(pid)
        if error is not None:
            raise error

    monkeypatch.setattr(os, "kill", kill)
    Pe(0, 10, connected_pid, exit_status).send_signal(signal.SIGTERM)
    assert signalled == receivers


def test_the_socket_is_in_a_private_directory_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as parent:
        monkeypatch.setattr(tempfile, "tempdir", parent)
        listener = Listener(backlog=1)
        directory = Path(listener.path).parent
        assert directory.parent == Path(parent)
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
        listener.close()
        listener.close()
        assert list(Path(parent).iterdir()) == []


def test_without_a_folder_for_the_socket_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    sentence = (
        r"no directory for the launcher's socket \(/nowhere: Permission denied; /tmp: Permission denied\): "
        "set TMPDIR to a short, writable one"
    )
    with pytest.raises(UsageError, match=sentence):
        Listener(backlog=1)
