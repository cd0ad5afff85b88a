"""`weft top` without a terminal: one sample, as a table or as JSON."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft._top import command
from weft._top.jobs import JobInfo, jobs
from weft._top.samples import PathRate, PeSample

from .conftest import HANG_S

Start = Callable[..., Any]  # see conftest.py
Top = Callable[..., Any]
TWO = ["-m", "weft", "run", "-n", "2"]


@pytest.fixture
def record(weft_top: Top) -> Callable[..., dict]:
    """record(job, shows): what --json prints of it, as soon as shows(record).

    A PE that waits for its core may do nothing between two looks.
    """

    def read(job: Any, shows: Callable[[dict], bool] = lambda record: True) -> dict:
        until = time.monotonic() + HANG_S
        while True:
            outcome = weft_top(job.number, "--json")
            assert outcome.returncode == 0, outcome.stderr
            record = json.loads(outcome.stdout)
            if shows(record) or time.monotonic() > until:
                return record

    return read


def exchanges(record: dict) -> bool:
    """Whether all PEs have handled calls, and messages have been sent."""
    paths = [path for pe in record["pes"] for path in pe["paths"]]
    return all(pe["handled_per_s"] > 0 for pe in record["pes"]) and sum_of(paths) > 0


def computes(record: dict) -> bool:
    """Whether PE 1 has computed all the time, and PE 0 has waited."""
    idle, busy = record["pes"]
    return idle["idle"] > 0.5 and busy["busy"] > 0.99 and busy["silent_for_s"] > 0


def sum_of(paths: list[dict]) -> float:
    return sum(path["messages_per_s"] for path in paths)


def test_a_job_that_exchanges_messages(start: Start, record: Callable[..., dict]) -> None:
    job = start(TWO)
    shown = record(job, exchanges)
    assert (shown["job"], shown["num_pes"]) == (job.number, 2)
    # Pages of other jobs, such as those of test_pages.py, are named too.
    own = tuple(f"process {pe['pid']}:" for pe in shown["pes"])
    assert [problem for problem in shown["problems"] if problem.startswith(own)] == []
    assert [pe["pe"] for pe in shown["pes"]] == [0, 1]
    for pe in shown["pes"]:
        assert pe["busy"] + pe["communication"] + pe["idle"] == pytest.approx(1)
        assert pe["handled_per_s"] > 0
        assert pe["host_bytes"] > pe["pool_bytes"] > 0
        assert pe["step_load_s"] is None
    paths = [path for pe in shown["pes"] for path in pe["paths"]]
    assert {path["memory"] for path in paths} == {"host"}
    assert sum_of(paths) > 0
    assert job.end() == ""


def test_a_pe_that_computes_is_busy_and_says_nothing(start: Start, record: Callable[..., dict]) -> None:
    job = start(TWO, "compute")
    idle, busy = record(job, computes)["pes"]
    assert busy["busy"] == pytest.approx(1)
    assert busy["silent_for_s"] > 0
    assert busy["idle_for_s"] == 0
    assert idle["idle"] > 0.5
    assert idle["idle_for_s"] > 0


def test_the_load_of_a_step(start: Start, record: Callable[..., dict]) -> None:
    job = start(TWO, "balance")
    assert all(pe["step_load_s"] >= 0.02 for pe in record(job)["pes"]), "two blocks that work for 10 ms each"


def test_a_program_without_a_launcher(start: Start, record: Callable[..., dict]) -> None:
    job = start([])
    shown = record(job)
    assert (shown["job"], shown["num_pes"]) == (job.number, 1)


def test_a_job_whose_first_pe_has_started_the_others(start: Start) -> None:
    job = start([], "attached")
    (info,) = (info for info in jobs()[0] if info.has_process(job.number))
    assert (info.num_pes, info.missing) == (2, 0)
    assert command.ask_what_waits(info).startswith(f"process {job.number} is asked")
    job.read_errors_until("what the PEs of the job wait for")


def test_a_table(start: Start, weft_top: Top) -> None:
    job = start(TWO)
    outcome = weft_top(job.number, "--once")
    assert outcome.returncode == 0, outcome.stderr
    head, titles, *rows = outcome.stdout.splitlines()
    assert head.startswith(f"job {job.number}: 2 PEs, ")
    assert titles.split()[:4] == ["PE", "busy", "comm", "idle"]
    assert [row.split()[0] for row in rows[:2]] == ["0", "1"]
    assert "host queue" in outcome.stdout


def test_any_pe_names_the_job(start: Start, weft_top: Top, record: Callable[..., dict]) -> None:
    job = start(TWO)
    pid = record(job)["pes"][1]["pid"]
    assert json.loads(weft_top(pid, "--json").stdout)["job"] == job.number


def test_a_process_of_no_job(weft_top: Top) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        outcome = weft_top(other.pid)
        assert other.stdin is not None
        other.stdin.write(b"\n")
    assert outcome.returncode == 2
    assert outcome.stderr == f"weft top: process {other.pid} is in no job of yours\n"


@pytest.mark.parametrize("interval", ["soon", "0", "nan", "inf"])
def test_an_interval_that_is_none(weft_top: Top, interval: str) -> None:
    outcome = weft_top("--interval", interval)
    assert outcome.returncode == 2
    assert f"'{interval}': give 0.1 seconds or more" in outcome.stderr


def test_every_key_is_documented() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "top.md").read_text(encoding="utf-8")
    keys = [*dataclasses.fields(PeSample), *dataclasses.fields(PathRate)]
    assert [key.name for key in keys if f"`{key.name}`" not in page] == []


def test_several_jobs_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    own = os.getpid()
    found = [JobInfo("a", 4, 111, {0: own, 2: own}), JobInfo("b", 1, 0, {0: own})]
    monkeypatch.setattr(command, "jobs", lambda: (found, []))
    assert command.top(None, interval_s=1, once=True, as_json=False) == 2
    shown = capsys.readouterr()
    assert shown.err == "weft top: give the number of the job, weft top JOB:\n"
    first, second = shown.out.splitlines()
    assert first.startswith("  111  4 PEs, 2 of them on this host: ")
    assert second.startswith(f"  {own}  1 PEs: ")


def test_no_job(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "jobs", lambda: ([], ["process 7: its page holds what cannot be"]))
    assert command.top(None, interval_s=1, once=True, as_json=False) == 2
    assert capsys.readouterr().err == (
        "weft top: process 7: its page holds what cannot be\nweft top: no job of yours runs on this host\n"
    )
