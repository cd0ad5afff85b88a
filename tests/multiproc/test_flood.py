"""Floods: a PE sends without end what another is slow to take, within 1 GB of address space above the start.

Each flood of programs/flood.cpp and programs/flood.py ends with right results or with the error that names
the peer.
WEFT_FLOOD_MESSAGES=10000000 makes it 10^7 messages.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

MESSAGES = int(os.environ.get("WEFT_FLOOD_MESSAGES", "400000"))
LIMIT_MIB = 1024


@pytest.fixture(scope="session")
def flood(build_folder: Path) -> Path:
    return build_folder / "tests" / "multiproc" / "flood"


@pytest.fixture(scope="session")
def limit_mib(flood: Path) -> int:
    """0 for a program built with a sanitizer, whose shadow memory no limit allows."""
    symbols = subprocess.run(["nm", "-D", str(flood)], capture_output=True, text=True).stdout
    return 0 if re.search(r"__(asan|tsan|ubsan)_", symbols) else LIMIT_MIB


def sum_below(number: int) -> int:
    return number * (number - 1) // 2


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "WEFT_CALL_LIMIT": "128", **more}


@pytest.mark.parametrize(
    "way", ["calls", "calls-back", "awaited", "awaited-back", "awaited-mutual", "asking-mutual"]
)
def test_every_call_arrives(flood: Path, limit_mib: int, run, way: str) -> None:
    number = MESSAGES // 20 if way.startswith("asking") else MESSAGES
    outcome = run("-n", 2, flood, way, number, limit_mib, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    took = f"took {number}, sum {sum_below(number)}"
    receivers = {"back": [0], "mutual": [0, 1]}.get(way.partition("-")[2], [1])
    assert re.findall(rf"PE (\d) {took}\n", outcome.stdout) == [str(pe) for pe in receivers], outcome.stdout


@pytest.mark.parametrize("way", ["calls-mutual", "asked"])
def test_a_flood_that_cannot_end_raises_an_error_with_the_peer(
    flood: Path, limit_mib: int, run, way: str
) -> None:
    outcome = run("-n", 2, flood, way, max(MESSAGES, 1_000_000), limit_mib, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    error = (
        r"PE (\d) has sent \d+ messages to PE (\d) that PE \2 has not handled \(\d+ MiB.*the limit is 128 MiB"
    )
    assert re.search(error, outcome.stdout), outcome.stdout
    # The calls before the error have arrived, each once.
    taken = [int(count) for count in re.findall(r"PE \d took (\d+),", outcome.stdout)]
    assert max(taken) > 1000


def test_a_flood_of_calls_to_the_own_pe_raises_an_error(flood: Path, limit_mib: int, run) -> None:
    outcome = run("-n", 1, flood, "own", max(MESSAGES, 4_000_000), limit_mib, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    assert re.search(
        r"\d+ calls and messages \(about \d+ MiB\) wait in the queue of this PE, 0", outcome.stdout
    )


def test_broadcasts_wait_for_the_slowest_pe(flood: Path, limit_mib: int, run) -> None:
    outcome = run("-n", 3, flood, "all", MESSAGES // 4, limit_mib, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    # The root is one of the receivers, and handles nothing inside the flood.
    assert (
        "wait in the queue of this PE" in outcome.stdout
        or outcome.stdout.count(f"took {MESSAGES // 4},") == 3
    )


def test_large_arguments_wait_at_the_sender(flood: Path, limit_mib: int, run) -> None:
    outcome = run("-n", 2, flood, "bytes", 4000, limit_mib, 1_000_000, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    assert "PE 1 took 4000, sum 4000" in outcome.stdout


def test_an_empty_limit_is_the_default(flood: Path, limit_mib: int, run) -> None:
    outcome = run("-n", 2, flood, "calls", 1000, limit_mib, env=environment(WEFT_CALL_LIMIT=""))
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    assert f"PE 1 took 1000, sum {sum_below(1000)}" in outcome.stdout


@pytest.mark.parametrize("limit", ["0", "-1", "12x", " ", "9" * 30])
def test_a_limit_that_is_none_is_refused_by_name(flood: Path, limit_mib: int, run, limit: str) -> None:
    outcome = run("-n", 2, flood, "calls", 1000, limit_mib, env=environment(WEFT_CALL_LIMIT=limit))
    assert f"WEFT_CALL_LIMIT is '{limit}': give a number of MiB, 1 or more" in outcome.stderr
    assert outcome.exit_code == 1


def test_calls_from_entry_methods_to_and_fro_end(flood: Path, limit_mib: int, run) -> None:
    outcome = run("-n", 2, flood, "bounced", MESSAGES, limit_mib, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    taken = [int(count) for count in re.findall(r"PE \d took (\d+),", outcome.stdout)]
    assert sum(taken) == MESSAGES + 1000


@pytest.mark.parametrize("way", ["stream", "stream-back", "stream-mutual"])
@pytest.mark.parametrize(("size", "share"), [(8, 1), (65536, 20)])
def test_awaited_sends_wait_for_receives(
    flood: Path, limit_mib: int, run, way: str, size: int, share: int
) -> None:
    number = MESSAGES // share
    outcome = run("-n", 2, flood, way, number, limit_mib, size, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    receivers = {"back": 1, "mutual": 2}.get(way.partition("-")[2], 1)
    assert outcome.stdout.count(f"took {number}, sum {number}") == receivers, outcome.stdout


def test_sends_that_are_not_awaited_are_refused_by_name(flood: Path, limit_mib: int, run) -> None:
    outcome = run("-n", 2, flood, "drops-mutual", max(MESSAGES, 1_000_000), limit_mib, 8, env=environment())
    assert re.search(r"sends hold 1\d\d MiB", outcome.stdout + outcome.stderr)


def test_a_peer_that_dies_ends_the_wait(flood: Path, limit_mib: int, run) -> None:
    outcome = run("-n", 2, flood, "dies", 100 * MESSAGES, limit_mib, env=environment())
    assert outcome.exit_code == 128 + 9
    assert "PE 1" in outcome.stderr and "SIGKILL" in outcome.stderr


# In a job of 6 PEs a broadcast reaches some through others.
@pytest.mark.parametrize(("way", "num_pes"), [("exits", 2), ("exits-back", 2), ("allexit-back", 6)])
def test_the_end_of_the_job_ends_the_flood(flood: Path, limit_mib: int, run, way: str, num_pes: int) -> None:
    outcome = run("-n", num_pes, flood, way, MESSAGES, limit_mib, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 3


PYTHON = Path(__file__).parent / "programs" / "flood.py"


@pytest.mark.parametrize("way", ["calls", "awaited-back", "awaited-mutual"])
def test_every_call_from_python_arrives(limit_mib: int, run, way: str) -> None:
    number = MESSAGES // 4
    outcome = run("-n", 2, PYTHON, way, number, limit_mib, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    receivers = {"back": [0], "mutual": [0, 1]}.get(way.partition("-")[2], [1])
    took = f"took {number}, sum {sum_below(number)}"
    assert re.findall(rf"PE (\d) {took}\n", outcome.stdout) == [str(pe) for pe in receivers], outcome.stdout


@pytest.mark.parametrize(("way", "num_pes"), [("calls-mutual", 2), ("own", 1)])
def test_a_python_flood_that_cannot_end_raises(limit_mib: int, run, way: str, num_pes: int) -> None:
    outcome = run("-n", num_pes, PYTHON, way, 1_000_000, limit_mib, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    assert "the limit is 128 MiB" in outcome.stdout


@pytest.mark.parametrize(("size", "share"), [(8, 10), (65536, 40)])
def test_awaited_sends_in_python_wait_for_receives(limit_mib: int, run, size: int, share: int) -> None:
    number = MESSAGES // share
    outcome = run("-n", 2, PYTHON, "stream-mutual", number, limit_mib, size, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    assert outcome.stdout.count(f"took {number}, sum {number}") == 2


def test_the_event_loop_runs_while_a_call_waits(limit_mib: int, run, tmp_path: Path) -> None:
    number = 200_000  # more than the second mark
    outcome = run("-n", 2, PYTHON, "loop_runs", number, limit_mib, 8, tmp_path / "gate", env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    assert f"PE 1 took {number}, sum {sum_below(number)}" in outcome.stdout


def test_awaited_calls_inside_an_event_loop_wait_in_the_call(limit_mib: int, run) -> None:
    number = 200_000
    outcome = run("-n", 2, PYTHON, "in_loop", number, limit_mib, env=environment())
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    assert f"PE 1 took {number}, sum {sum_below(number)}" in outcome.stdout


def test_ctrl_c_while_a_call_waits_reaches_the_caller(limit_mib: int, run, tmp_path: Path) -> None:
    outcome = run("-n", 2, PYTHON, "interrupted", 10**9, limit_mib, 8, tmp_path / "gate", env=environment())
    assert "the loop was interrupted" in outcome.stdout
    assert outcome.exit_code != 0
