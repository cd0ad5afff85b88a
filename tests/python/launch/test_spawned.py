"""Requests of MPI_Comm_spawn that are not fulfilled. tests/python/mpi/test_connected_jobs.py spawns."""

from __future__ import annotations

import socket
import struct
import uuid
from collections.abc import Iterator

import pytest

from weft.launch.mpi.spawned import SpawnedJobs
from weft.launch.signals import SignalFd

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
    ],
)
def test_the_root_is_told_why_nothing_is_started(jobs, root, command, sentence):
    jobs.start(request(root.getsockname()[1:].decode(), PORT, 1, *command))
    assert not jobs.running
    connected, _ = root.accept()
    with connected:
        message = connected.makefile("rb").read()
    magic, revision, high, low, rank = struct.unpack_from("<8sI4x24xQQi", message)
    assert (magic, revision, high, low, rank) == (b"WEFTLINK", 1, 0x1F, 2, 3)
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
