"""The Python front end on one PE and on several: each program checks itself."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import TIMEOUT_S, program_environment, program_path


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize(
    "program",
    [
        "asyncio_edge.py",
        "asyncio_functions.py",
        "call_values.py",
        "callbacks.py",
        "calls_at_end.py",
        "calls_elsewhere.py",
        "channels.py",
        "chares.py",
        "class_names.py",
        "closed_waiters.py",
        "device_channels.py",
        "event_loops.py",
        "first_awaits.py",
        "giving_up.py",
        "linked_arguments.py",
        "one_buffer.py",
        "other_threads.py",
        "payloads.py",
        "pickled_at_once.py",
        "posted_pickles.py",
        "proxies.py",
        "registered.py",
        "refusals.py",
        "run_beside.py",
        "transports.py",
        "turns.py",
        "undecodable.py",
        "values.py",
        "without_numpy.py",
    ],
)
def test_program(expect_success: Callable[..., str], program: str, num_pes: int) -> None:
    assert expect_success(num_pes, program) == "all checked\n"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_more_than_2_gib(expect_success: Callable[..., str]) -> None:
    meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
    available_gib = int(meminfo.partition("MemAvailable:")[2].split()[0]) >> 20
    if available_gib < 8:
        pytest.skip(f"needs 8 GiB of memory, and {available_gib} GiB are available")
    assert expect_success(2, "more_than_2_gib.py", timeout_s=550) == "all checked\n"


def test_runs_after_each_other(expect_success: Callable[..., str]) -> None:
    assert expect_success(1, "twice.py") == "all checked\n"


@pytest.mark.parametrize("program", ["buffers.py", "device_arrays.py"])
def test_program_of_one_pe(expect_success: Callable[..., str], program: str) -> None:
    assert expect_success(1, program) == "all checked\n"


@pytest.mark.parametrize("num_pes", [1, 2])
def test_channels_in_check_mode(expect_success: Callable[..., str], num_pes: int) -> None:
    assert expect_success(num_pes, "checked.py", environment={"WEFT_CHECK": "1"}) == "all checked\n"


@pytest.mark.parametrize("num_pes", [1, 2])
def test_buffers_of_sends_must_not_change(expect_success: Callable[..., str], num_pes: int) -> None:
    environment = {"WEFT_CHECK": "1"}
    assert expect_success(num_pes, "changed_sends.py", environment=environment) == "all checked\n"


@pytest.mark.parametrize("num_pes", [1, 3])
def test_a_pe_knows_its_place_before_and_after_a_job(
    expect_success: Callable[..., str], num_pes: int
) -> None:
    expect_success(num_pes, "place.py", str(num_pes))


def test_the_place_under_a_launcher_that_does_not_say_it() -> None:
    command = (
        "import weft\nassert weft.my_pe() == 3\ntry: weft.num_pes()\nexcept weft.Error as error: print(error)"
    )
    environment = program_environment({"PMIX_NAMESPACE": "job", "PMIX_RANK": "3"})
    ended = subprocess.run(
        [sys.executable, "-c", command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
        env=environment,
    )
    assert "call weft.num_pes() in main or in an entry method" in ended.stdout


@pytest.mark.parametrize("num_pes", [1, 2])
def test_device_channels_through_host_memory(expect_success: Callable[..., str], num_pes: int) -> None:
    staged = {"WEFT_STAGING": "host"}
    assert expect_success(num_pes, "device_channels.py", environment=staged) == "all checked\n"


@pytest.mark.parametrize(
    ("program", "num_pes"),
    [("buffers.py", 1), ("streams.py", 1), ("device_channels.py", 2), ("payloads.py", 1), ("payloads.py", 2)],
)
def test_program_over_the_stand_in_cuda_driver(
    expect_success: Callable[..., str], stand_in_cuda: dict[str, str], program: str, num_pes: int
) -> None:
    assert expect_success(num_pes, program, "cuda", environment=stand_in_cuda) == "all checked\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_line_is_written_in_one_piece(unbuffered: str) -> None:
    """Or those of several PEs would mix: each datagram is one write."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        subprocess.run(
            [sys.executable, str(program_path("refusals.py"))],
            stdout=theirs,
            timeout=TIMEOUT_S,
            check=True,
            env=program_environment({"PYTHONUNBUFFERED": unbuffered}),
        )
        assert ours.recv(100) == b"all checked\n"
