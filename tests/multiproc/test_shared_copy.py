"""Large arrays between processes of a host: both copy them, or UCX does where the system refuses."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "shared_copy_probe.py"
# Of 7 sizes, 4 are large enough, 5 messages each.
NUM_LARGE = 4 * 5
# Values are shared from 600,000 bytes on: 3 of the sizes.
NUM_LARGE_VALUES = 3 * 5
REFUSED = "peer memory was not used: copying from process"


def shared_of(outcome) -> list[int]:
    assert outcome.exit_code == 0, outcome.stderr
    name, *numbers = outcome.stdout.split()
    assert name == "shared"
    return [int(number) for number in numbers]


def test_large_arrays_are_copied_by_both_pes(run) -> None:
    outcome = run("-n", 2, "--stats", PROGRAM, "exchange")
    assert shared_of(outcome) == [NUM_LARGE, NUM_LARGE]
    assert "shared" in outcome.stderr
    assert REFUSED not in outcome.stderr


def test_a_system_that_refuses_is_named_and_arrays_arrive_all_the_same(run) -> None:
    outcome = run("-n", 2, "--stats", PROGRAM, "exchange", "forbidden")
    assert shared_of(outcome) == [0, 0]
    assert outcome.stderr.count(REFUSED) == 2, outcome.stderr


def test_large_payloads_are_copied_by_both_pes(run) -> None:
    outcome = run("-n", 2, PROGRAM, "payloads")
    assert shared_of(outcome) == [NUM_LARGE, NUM_LARGE]
    outcome = run("-n", 2, PROGRAM, "payloads", "forbidden")
    assert shared_of(outcome) == [0, 0]


def test_large_values_are_copied_by_both_pes_and_are_those_of_the_call(run) -> None:
    outcome = run("-n", 2, PROGRAM, "values")
    assert shared_of(outcome) == [NUM_LARGE_VALUES, NUM_LARGE_VALUES]
    outcome = run("-n", 2, PROGRAM, "values", "forbidden")
    assert shared_of(outcome) == [0, 0]


@pytest.mark.parametrize("way", ["exchange", "payloads", "values"])
@pytest.mark.parametrize("where", ["forbidden-later", "forbidden-later-0", "forbidden-later-1"])
def test_a_system_that_refuses_after_the_start_costs_speed_only(run, way: str, where: str) -> None:
    shared_of(run("-n", 2, PROGRAM, way, where))


def test_a_message_arrives_while_its_receiver_computes(run) -> None:
    outcome = run("-n", 2, PROGRAM, "computing")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout == "came while computing: True\n"


# `weft run` with more time for PE 0, which may wait for its core.
PATIENT = (
    "from weft import cli\nfrom weft.launch import job\njob.GRACE_S = 30.0\nraise SystemExit(cli.main())"
)


def test_a_call_ends_if_its_receiver_is_killed_while_it_reads_the_argument(
    start_command, build_folder: Path, job_folder: Path, tmp_path: Path
) -> None:
    library = build_folder / "tests" / "multiproc" / "libdie_reading.so"
    assert library.exists(), f"{library} is not built"
    dying = {
        **os.environ,
        "TMPDIR": str(job_folder),
        "LD_PRELOAD": str(library),
        "WEFT_TEST_DIE_READING": "213571",
        "WEFT_TEST_DIE_MARK": str(tmp_path / "dies"),
    }
    launcher = [sys.executable, "-c", PATIENT, "run", "-n", "2"]
    outcome = start_command([*launcher, str(PROGRAM), "dying"], env=dying).wait()
    assert outcome.exit_code != 0
    assert re.search(r"PE 1 \(pid \d+\) was killed by signal 9 \(SIGKILL\)", outcome.stderr), outcome.stderr
    *_, call, left = outcome.stdout.splitlines()
    assert call.startswith("call "), outcome.stdout
    assert left == call.replace("call", "left"), "the call hangs until the launcher kills it"
