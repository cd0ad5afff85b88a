"""Whole jobs that lose a PE or go wrong: they end everywhere, in time, and stderr says what and where."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

END_WITHIN_S = 5.0
NUM_PES = 4


@pytest.fixture(scope="session")
def fault_probe(build_folder: Path) -> Path:
    """programs/fault_probe.cpp; its head says what it does."""
    return build_folder / "tests" / "multiproc" / "fault_probe"


@pytest.mark.parametrize("doing", ["load", "idle", "busy", "startup"])
@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_pe_ends_the_job(start, fault_probe: Path, doing: str, victim: int) -> None:
    job = start("-n", NUM_PES, fault_probe, doing)
    job.wait_ready(NUM_PES)
    os.kill(job.pids[victim], signal.SIGKILL)
    outcome = job.wait()
    assert outcome.seconds < END_WITHIN_S
    death = rf"weft run: PE {victim} \(pid {job.pids[victim]}\) was killed by signal 9 \(SIGKILL\)"
    assert re.search(rf"^{death}", outcome.stderr, re.MULTILINE), outcome.stderr
    assert outcome.exit_code != 0


@pytest.mark.parametrize("doing", ["load", "idle", "busy"])
def test_the_launchers_death_ends_every_pe(start, fault_probe: Path, doing: str) -> None:
    job = start("-n", NUM_PES, fault_probe, doing)
    job.wait_ready(NUM_PES)
    job.process.kill()
    assert job.wait_gone(END_WITHIN_S)


@pytest.mark.parametrize("doing", ["idle", "busy"])
def test_the_launchers_death_ends_pes_behind_wrappers(start, fault_probe: Path, doing: str) -> None:
    job = start("-n", 2, "sh", "-c", f'"$0" {doing}; exit $?', fault_probe)
    job.wait_ready(2)
    job.process.kill()
    assert job.wait_gone(END_WITHIN_S)
    _, stderr = job.process.communicate()
    lost = rf"weft: PE (\d) lost `weft run` \(pid {job.process.pid}\): .* start it again"
    ended = r"weft: PE (\d) ends although it is busy: its launcher has gone or ended the job 3000 ms ago"
    said = sorted(match[1] or match[2] for match in re.finditer(f"(?:{lost})|(?:{ended})", stderr))
    assert said == ["0", "1"], stderr


@pytest.mark.parametrize("doing", ["load", "idle"])
def test_a_signal_to_the_launcher_ends_the_job(start, fault_probe: Path, doing: str) -> None:
    job = start("-n", NUM_PES, fault_probe, doing)
    job.wait_ready(NUM_PES)
    job.process.send_signal(signal.SIGTERM)
    outcome = job.wait()
    assert outcome.seconds < END_WITHIN_S
    assert outcome.exit_code == 128 + signal.SIGTERM
    assert "interrupted by signal 15 (SIGTERM)" in outcome.stderr


def expect_failure(outcome, *lines: str) -> None:
    """The sentence, once, then the launcher's; nothing from the other PEs."""
    text = "\n".join(lines)
    pattern = rf"weft: {text}\nweft run: PE \d \(pid \d+\) aborted with exit code 1; ending the job\n"
    assert re.fullmatch(pattern, outcome.stderr), outcome.stderr
    assert outcome.exit_code == 1


def test_an_exception_that_nobody_awaits(run, fault_probe: Path) -> None:
    expect_failure(
        run("-n", NUM_PES, fault_probe, "throw"),
        r"PE 1: an exception that nobody awaits left .*Worker\[1\]\.fail_later on PE 1",
        r"std::invalid_argument: the number 13 is not liked here",
        r"  .*Worker\[1\]\.fail_later on PE 1",
    )


def test_an_exception_that_main_lets_through_keeps_where_it_came_from(run, fault_probe: Path) -> None:
    outcome = run("-n", NUM_PES, fault_probe, "rethrow")
    assert "an exception that nobody awaits left main on PE 0\n" in outcome.stderr
    assert "std::invalid_argument: the number 13 is not liked here\n" in outcome.stderr
    assert re.search(r"Worker\[1\]\.fail on PE 1\n", outcome.stderr), outcome.stderr
    assert outcome.exit_code == 1


def test_an_exception_that_is_caught_ends_nothing(run, fault_probe: Path) -> None:
    outcome = run("-n", NUM_PES, fault_probe, "catch")
    assert outcome.stdout == "caught std::invalid_argument: the number 13 is not liked here\n"
    assert (outcome.stderr, outcome.exit_code) == ("", 0)


def test_an_index_out_of_range(run, fault_probe: Path) -> None:
    outcome = run("-n", NUM_PES, fault_probe, "range")
    assert f"index {NUM_PES} is outside a collection of shape {NUM_PES}" in outcome.stderr
    assert outcome.exit_code == 1


def test_a_receive_of_the_wrong_size(run, fault_probe: Path) -> None:
    outcome = run("-n", NUM_PES, fault_probe, "size")
    assert re.search(
        r"the channel .*Worker\[0\] - .*Worker\[1\], id 0, on PE 0: a receive of 8 bytes met a send of 4",
        outcome.stderr,
    ), outcome.stderr
    assert outcome.exit_code == 1


@pytest.mark.parametrize("code", [0, 1, 77])
def test_the_jobs_exit_code(run, fault_probe: Path, code: int) -> None:
    outcome = run("-n", NUM_PES, fault_probe, "exit", code)
    assert (outcome.stderr, outcome.exit_code) == ("", code)


def test_a_pe_that_cannot_be_reached(run, fault_probe: Path) -> None:
    # A transport that only reaches the process itself.
    outcome = run(
        "-n", 2, fault_probe, "catch", env={**os.environ, "UCX_TLS": "self", "UCX_LOG_LEVEL": "fatal"}
    )
    assert re.search(r"^weft: .*PE \d cannot be reached: .*Check that UCX_TLS", outcome.stderr, re.MULTILINE)
    assert outcome.exit_code == 1


def test_different_programs_in_one_job(run, fault_probe: Path, build_folder: Path) -> None:
    ring = build_folder / "examples" / "ring"
    outcome = run("-n", 2, "sh", "-c", f"test $WEFT_PE = 0 && exec {ring}; exec {fault_probe} idle")
    assert "run different programs (their entry methods differ); start the same build" in outcome.stderr
    assert outcome.exit_code == 1
