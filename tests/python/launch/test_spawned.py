"""Requests of MPI_Comm_spawn that are not fulfilled. tests/python/mpi/test_connected_jobs.py spawns."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import uuid
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace

import pytest

from weft.launch.job import Job
from weft.launch.mpi import spawned
from weft.launch.mpi.spawned import SpawnedJobs
from weft.launch.signals import ReceivedSignal, SignalFd

PORT = "weft-port:1f:2:3:a5"


@pytest.fixture
def jobs() -> Iterator[SpawnedJobs]:
    signals = SignalFd([])
    yield SpawnedJobs(signals)
    signals.close()


@pytest.fixture
def root() -> Iterator[socket.socket]:
    """The socket of the process that asks."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0weft-test-{uuid.uuid4()}")
        listener.listen()
        listener.settimeout(30)
        yield listener


def request(*texts: object) -> bytes:
    return b"".join(str(text).encode() + b"\0" for text in texts)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        request("address"),
        request("address", PORT, "many"),
        request("address", PORT, 1, 1, 0, 5, "true"),
        request("address", PORT, 2, 1, 0, 1, "true"),
        request("address", PORT, 0),
        request("address", PORT, 1, 1, 0, 0),
        request("address", "weft-port:1f:2:3", 1, 1, 0, 1, "/no/such/program"),
        request("address", "weft-port:1f:2:-3:a5", 1, 1, 0, 1, "/no/such/program"),
        request("address", f"weft-port:{1 << 64:x}:2:3:a5", 1, 1, 0, 1, "/no/such/program"),
        request("", "weft-port:x:2:3:a5"),
    ],
)
def test_a_damaged_request_starts_nothing(jobs, damaged):
    jobs.start(damaged)
    assert not jobs.running


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ((1, 0, 1, "/no/such/program"), "/no/such/program: No such file or directory"),
        ((0, 0, 1, "true"), "a job has at least one PE"),
        ((1, 1, "host", "elsewhere", 1, "true"), "the hint 'host' is 'elsewhere'"),
        ((1, 1, "wdir", "/no/such/folder", 1, "true"), "/no/such/folder"),
        ((1, 0, 5, "true", ":", "-n", "2", "false"), "change one of them"),
        ((1, 1, "wdir", "/", 1, "./no-such-program"), "/no-such-program: No such file"),
        ((1, 1, "wdir", "/tmp", 1, "no-such-program.py"), "/tmp/no-such-program.py: No such file"),
        ((1, 1, "wdir", "/", 1, "no-such-program"), "/no-such-program: No such file"),
    ],
)
def test_the_root_is_told_why_nothing_is_started(jobs, root, command, sentence):
    jobs.start(request(root.getsockname()[1:].decode(), PORT, 1, *command))
    assert not jobs.running
    connected, _ = root.accept()
    with connected:
        message = connected.makefile("rb").read()
    magic, revision, high, low, rank = struct.unpack_from("<8sI4x24xQQi", message)
    assert (magic, revision, high, low, rank) == (b"WEFTLINK", 2, 0x1F, 2, 3)
    message_type, size, port = struct.unpack_from("<I4xQQ", message, 64)
    assert (message_type, port) == (7, 0xA5)
    text = message[64 + 16 + 8 :].decode()
    assert size == 8 + len(text)
    assert sentence in text


def test_commands_of_one_job_share_their_folder(jobs, root):
    commands = [(1, 1, "wdir", folder, 1, "true") for folder in ("/", "/tmp")]
    jobs.start(request(root.getsockname()[1:].decode(), PORT, 2, *commands[0], *commands[1]))
    assert not jobs.running
    connected, _ = root.accept()
    with connected:
        assert b"the commands have different values of 'wdir'" in connected.makefile("rb").read()


def test_programs_are_found_from_the_folder_of_the_job_on(jobs, tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    program = tmp_path / "inner" / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    started = []
    monkeypatch.setattr(
        subprocess, "Popen", lambda argv, **options: started.append(argv) or SimpleNamespace(pid=1)
    )
    for name in ("./program", "program"):
        jobs.start(request("address", PORT, 1, 1, 1, "wdir", "inner", 1, name))
    assert [argv[-1] for argv in started] == [str(program)] * 2


def test_any_request_starts_a_job_or_nothing(jobs, monkeypatch):
    """The launcher serves the other PEs, whatever one of them sends."""
    monkeypatch.setattr(subprocess, "Popen", lambda argv, **options: SimpleNamespace(pid=1))
    monkeypatch.setattr(spawned, "_tell", lambda request, sentence: None)
    random = Random(5)
    whole = request("address", PORT, 2, 1, 1, "host", "", 2, "true", "a", 2, 0, 1, "false")
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(damaged))
            damaged[at : at + random.randrange(3)] = random.randbytes(random.randrange(3))
        jobs.start(bytes(damaged))


def test_spawned_jobs_get_a_signal_once():
    """A second one would kill their processes at once, before they have cleaned up."""
    job = Job([["true"]], {})
    sent: list[int] = []
    job._spawned = SimpleNamespace(running=True, send_signal=sent.append)
    job._service = SimpleNamespace(end=lambda reason: None)
    job._pass_on(ReceivedSignal(signal.SIGTERM, from_terminal=False))
    job._end_interrupted(signal.SIGTERM)
    assert sent == [signal.SIGTERM, signal.SIGCONT]
