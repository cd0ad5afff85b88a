"""`weft run` asked for what cannot be: one sentence that says what and what to do, exit code 2."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest


def expect_sentence(outcome, sentence: str) -> None:
    assert outcome.stderr == f"weft run: {sentence}\n"
    assert outcome.stdout == ""
    assert outcome.exit_code == 2


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("0", "-n 0: a job has at least one PE; give a number from 1 to 4096"),
        ("-3", "-n -3: a job has at least one PE; give a number from 1 to 4096"),
        ("two", "-n takes the number of PEs, a whole number from 1 to 4096, not 'two'"),
        ("1.5", "-n takes the number of PEs, a whole number from 1 to 4096, not '1.5'"),
        (
            "4097",
            "-n 4097: `weft run` starts at most 4096 PEs; for more use the resource manager's "
            "launcher (srun, mpiexec)",
        ),
    ],
)
def test_wrong_number_of_pes(run, probe: Path, value: str, sentence: str) -> None:
    expect_sentence(run("-n", value, probe), sentence)


def test_nothing_to_do(run, probe: Path) -> None:
    sentence = "say how many PEs and which program: weft run -n N program [arguments]"
    expect_sentence(run(), sentence)
    expect_sentence(run("-n", 2), sentence)
    expect_sentence(run(probe), sentence)


def test_unknown_option(run, probe: Path) -> None:
    expect_sentence(run("-n", 2, "--fast", probe), "unknown options: --fast (see weft run --help)")


def test_a_setting_that_is_none(run, probe: Path) -> None:
    refused = run("-n", 2, "--staging", "both", probe)  # in argparse's words, which change with Python
    assert refused.stderr.startswith("weft run: argument --staging: invalid choice: 'both' (choose from ")
    assert refused.exit_code == 2
    expect_sentence(
        run("-n", 2, probe, env={**os.environ, "WEFT_STAGING": "yes"}),
        "WEFT_STAGING='yes': choose device or host, or unset it",
    )
    for value in ("", "all", "0,", "-1", "0 1"):
        sentence = f"--gpus takes auto, none or a list of GPUs such as 0,2, not '{value}'"
        expect_sentence(run("-n", 2, f"--gpus={value}", probe), sentence)


def test_other_hosts(run, probe: Path) -> None:
    expect_sentence(
        run("-n", 2, "--hostfile", "hosts", probe),
        "name the hosts with --hosts: weft run --hosts a:4,b:4 -n 8 program",
    )


def test_missing_programs(run, tmp_path: Path) -> None:
    what_to_do = "No such file or directory; give the path of a program or of a .py file"
    for name in ("nothing", "nothing.py"):
        expect_sentence(run("-n", 2, tmp_path / name), f"{tmp_path / name}: {what_to_do}")
    expect_sentence(
        run("-n", 2, "no-such-program"),
        "no-such-program: no such program here or on PATH; give its path, for example build/no-such-program",
    )


def test_a_directory(run, tmp_path: Path) -> None:
    expect_sentence(
        run("-n", 2, tmp_path),
        f"{tmp_path}: is a directory; give the path of a program or of a .py file in it",
    )


def test_not_executable(run, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    expect_sentence(
        run("-n", 2, program),
        f"{program}: not executable; `chmod +x {program}` if it is a program, or give a .py file",
    )


def test_a_file_that_the_system_cannot_run(run, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF is all there is")
    program.chmod(0o755)
    expect_sentence(run("-n", 2, program), f"{program}: cannot be run as PE 0: Exec format error")


def test_too_few_open_files(run, probe: Path) -> None:
    outcome = run("-n", 4000, probe, preexec_fn=lambda: _limit_open_files(100))
    expect_sentence(
        outcome,
        "4064 open files are needed for that many PEs and the limit is 100: start fewer (-n) or "
        "raise the limit (ulimit -Hn)",
    )


def _limit_open_files(count: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
