"""Jobs that handle losses of PEs themselves (`weft run --on-loss raise`)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "programs" / "supervised.py"
# A job that takes longer hangs.
HANG_S = 150


def run_job(what: str, num_pes: int = 3, on_loss: str = "raise") -> subprocess.CompletedProcess[str]:
    """Runs supervised.py."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "weft", "run", "-n", str(num_pes), "--on-loss", on_loss),
            *(str(PROGRAM), what),
        ],
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )


def lines_of(ended: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What a job that has ended well has printed, by the words in front."""
    assert ended.returncode == 0, f"exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return dict(line.split(": ", 1) for line in ended.stdout.splitlines())


def test_calls_to_a_lost_chare_fail() -> None:
    """Calls under way, later ones, and one inside of another chare's method; calls to living chares go on."""
    ended = run_job("call")
    seen = lines_of(ended)
    for which in ("dies", "waits", "later", "nested", "array", "quiescence"):
        assert seen[which].startswith("LostPE 2: "), (which, ended.stdout, ended.stderr)
    assert "Worker[2].die" in seen["dies"]
    assert "Worker[2].never" in seen["waits"]
    assert "Worker[2].count" in seen["nested"]
    assert seen["living"] == "1"
    assert re.search(
        r"weft run: PE 2 \(pid \d+\) was killed by signal 9 \(SIGKILL\); the job goes on without it\n",
        ended.stderr,
    )


def test_operations_of_collections_fail() -> None:
    """A call to all elements, a reduction and a receive that are under way, and a later send."""
    ended = run_job("together")
    seen = lines_of(ended)
    assert seen["first"] == "first"
    for which in ("gather", "allreduce", "channel", "send"):
        assert seen[which].startswith("LostPE 2: "), (which, ended.stdout, ended.stderr)


def test_a_lost_chare_is_made_anew() -> None:
    """Its constructor runs with the arguments of its array, on a living PE, and all PEs find it."""
    ended = run_job("revive")
    seen = lines_of(ended)
    assert "Worker[2] cannot be revived: it is not lost" in seen["alive"]
    assert seen["new"] == "0 1"
    assert seen["single dies"].startswith("LostPE 2: ")
    assert seen["single"] == "0 1"
    assert seen["from 1"] == "2"
    assert seen["made later"] == "[0, 1, 0]"
    assert "an element of a group belongs to its PE" in seen["group"]


def test_a_supervisor_goes_on_through_losses() -> None:
    """Until PE 0 alone is left."""
    ended = run_job("loop")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout == "done 58 [0, 0, 0]\n"
    assert ended.stderr.count("the job goes on without it") == 2


def test_the_loss_of_pe_0_ends_the_job() -> None:
    """Main runs there."""
    ended = run_job("main_dies")
    assert ended.returncode == 137
    assert "main runs on PE 0, and the job cannot go on without it" in ended.stderr


def test_without_the_option_a_loss_ends_the_job() -> None:
    """As ever."""
    ended = run_job("call", on_loss="end")
    assert ended.returncode == 137
