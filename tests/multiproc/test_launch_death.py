"""A PE that dies, at every stage and in every way: the job ends on all PEs, and stderr says who and how."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from .conftest import END_WITHIN_S

STAGES = ("start", "join", "exchange", "barrier", "finish")


def expect_one_sentence(outcome, pattern: str) -> None:
    """Nothing else may be on stderr: every PE says the same otherwise."""
    assert re.fullmatch(f"weft run: {pattern}\n", outcome.stderr), outcome.stderr


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("victim", [0, 2])
def test_killed_at_each_stage(start, probe: Path, victim: int, stage: str) -> None:
    dying = (f"{victim}:{stage}:ready", f"{victim}:{stage}:kill")
    job = start("-n", 4, probe, 3, *dying, "*:finish:idle")
    job.wait_ready(1)
    outcome = job.wait()
    expect_one_sentence(
        outcome, rf"PE {victim} \(pid \d+\) was killed by signal 9 \(SIGKILL\); ending the job"
    )
    assert outcome.exit_code == 128 + signal.SIGKILL
    assert outcome.seconds < END_WITHIN_S


@pytest.mark.parametrize("stage", STAGES)
def test_exit_with_a_code_at_each_stage(run, probe: Path, stage: str) -> None:
    outcome = run("-n", 4, probe, 3, f"1:{stage}:exit3", "*:finish:idle")
    expect_one_sentence(outcome, r"PE 1 \(pid \d+\) exited with code 3; ending the job")
    assert outcome.exit_code == 3


@pytest.mark.parametrize("stage", STAGES[1:])
def test_exit_with_code_0_while_others_need_it(run, probe: Path, stage: str) -> None:
    outcome = run("-n", 4, probe, 3, f"1:{stage}:exit0", "*:finish:idle")
    expect_one_sentence(
        outcome, r"PE 1 \(pid \d+\) exited with code 0 before the job was finished; ending the job"
    )
    assert outcome.exit_code == 1


def test_exit_with_code_0_without_joining(run, probe: Path) -> None:
    outcome = run("-n", 4, probe, 3, "1:start:exit0")
    expect_one_sentence(
        outcome,
        r"PE 1 \(pid \d+\) exited with code 0 without joining the job that PE \d is in; ending the job",
    )
    assert outcome.exit_code == 1


def test_crash_is_named(run, probe: Path) -> None:
    outcome = run("-n", 2, probe, 1, "1:barrier:segv")
    expect_one_sentence(outcome, r"PE 1 \(pid \d+\) was killed by signal 11 \(SIGSEGV\); ending the job")
    assert outcome.exit_code == 128 + signal.SIGSEGV


def test_crash_after_the_end_is_named_and_ends_nobody(run, probe: Path) -> None:
    outcome = run("-n", 4, probe, 1, "1:finished:kill")
    expect_one_sentence(outcome, r"PE 1 \(pid \d+\) was killed by signal 9 \(SIGKILL\) after it had finished")
    assert len(outcome.stdout.splitlines()) == 4
    assert outcome.exit_code == 128 + signal.SIGKILL


@pytest.mark.parametrize("doing", ["idle", "spin"])
@pytest.mark.parametrize("victim", [0, 3])
def test_killed_from_outside(start, probe: Path, doing: str, victim: int) -> None:
    job = start("-n", 4, probe, 1, "*:finish:ready", f"*:finish:{doing}")
    job.wait_ready(4)
    os.kill(job.pids[victim], signal.SIGKILL)
    outcome = job.wait()
    expect_one_sentence(
        outcome,
        rf"PE {victim} \(pid {job.pids[victim]}\) was killed by signal 9 \(SIGKILL\); ending the job",
    )
    assert outcome.exit_code == 128 + signal.SIGKILL
    assert outcome.seconds < END_WITHIN_S


def test_pes_that_ignore_sigterm_are_killed(start, probe: Path) -> None:
    job = start("-n", 4, probe, 1, "*:finish:stubborn", "*:finish:ready", "*:finish:spin")
    job.wait_ready(4)
    os.kill(job.pids[1], signal.SIGKILL)
    outcome = job.wait()
    assert "PE 1" in outcome.stderr
    assert outcome.seconds < END_WITHIN_S


def test_stopped_pes_are_ended_too(start, probe: Path) -> None:
    job = start("-n", 3, probe, 1, "*:finish:ready", "*:finish:idle")
    job.wait_ready(3)
    os.kill(job.pids[0], signal.SIGSTOP)
    os.kill(job.pids[1], signal.SIGKILL)
    assert job.wait().seconds < END_WITHIN_S


def test_the_program_behind_a_dead_wrapper_is_ended(start, probe: Path) -> None:
    job = start("-n", 2, "sh", "-c", '"$0" 1 *:finish:stubborn *:finish:ready *:finish:spin; exit $?', probe)
    job.wait_ready(2)
    wrapper = _parent_of(job.pids[1])
    assert wrapper != job.process.pid
    os.kill(wrapper, signal.SIGKILL)
    assert job.process.wait(END_WITHIN_S) == 128 + signal.SIGKILL
    # If a wrapper is gone, only init reaps its program.
    assert job.wait_gone(END_WITHIN_S)


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_abort_prints_its_message_once(run, probe: Path) -> None:
    outcome = run("-n", 4, probe, 1, "*:barrier:abort")
    assert re.fullmatch(
        r"the probe was told to abort\nwith a second line\n"
        r"weft run: PE \d \(pid \d+\) aborted with exit code 7; ending the job\n",
        outcome.stderr,
    ), outcome.stderr
    assert outcome.exit_code == 7


def test_hanging_up_counts_as_death(start, probe: Path) -> None:
    job = start("-n", 3, probe, 1, "1:barrier:ready", "1:barrier:hangup")
    job.wait_ready(1)
    outcome = job.wait()
    expect_one_sentence(
        outcome,
        r"PE 1 \(pid \d+\) closed its connection to the launcher before it had finished; ending the job",
    )
    assert outcome.exit_code == 1
    assert outcome.seconds < END_WITHIN_S


def test_no_orphan_survives_a_killed_launcher(start, probe: Path, job_folder: Path) -> None:
    job = start("-n", 4, probe, 1, "*:finish:stubborn", "*:finish:ready", "*:finish:spin")
    job.wait_ready(4)
    job.process.kill()
    assert job.wait_gone(END_WITHIN_S)
    assert list(job_folder.iterdir()) == []


def test_a_pe_behind_a_wrapper_notices_that_the_launcher_is_gone(start, probe: Path) -> None:
    job = start("-n", 2, "sh", "-c", '"$0" 1 *:finish:ready *:finish:idle; exit $?', probe)
    job.wait_ready(2)
    job.process.kill()
    assert job.wait_gone(END_WITHIN_S)
    _, stderr = job.process.communicate()
    lost = rf"probe: peer failed: PE \d lost `weft run` \(pid {job.process.pid}\): .*start it again\n"
    assert re.fullmatch(lost * 2, stderr), stderr


def test_a_program_started_by_a_pe_is_told_what_is_wrong(run, probe: Path) -> None:
    outcome = run("-n", 1, "sh", "-c", '"$0" 1 && "$0" 1', probe)
    assert "all PEs of that job have joined; one launch is one Weft job" in outcome.stderr
    assert outcome.exit_code == 1


def test_many_pes_end_in_time(start, probe: Path) -> None:
    job = start("-n", 32, probe, 1, "*:finish:ready", "*:finish:idle")
    job.wait_ready(32)
    os.kill(job.pids[17], signal.SIGKILL)
    assert job.wait().seconds < END_WITHIN_S
