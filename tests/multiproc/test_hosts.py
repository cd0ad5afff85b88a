"""`weft run --hosts`: agents that a stand-in for ssh starts on this host. tests/multihost has real hosts."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

#: As ssh, but on this host: the arguments are a name and a command line.
SHELL = '#!/bin/sh\necho "Welcome to $1"\nshift\nexec sh -c "$*"\n'


@pytest.fixture(autouse=True)
def remote_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    shell = tmp_path / "shell"
    shell.write_text(SHELL)
    shell.chmod(0o755)
    monkeypatch.setenv("WEFT_REMOTE_SHELL", str(shell))
    return


def remove_leftovers(job_folder: Path) -> None:
    """A launcher or an agent that is killed leaves its folder for the next one to remove."""
    for folder in job_folder.glob("weft-run-*"):
        shutil.rmtree(folder)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def without_pids(text: str) -> str:
    return re.sub(r"pid \d+", "pid PID", text)


@pytest.fixture
def write(tmp_path: Path):
    def write_program(text: str) -> Path:
        path = tmp_path / "program.py"
        path.write_text(text)
        return path

    return write_program


CALLS = """\
import os, sys
import weft

class Place(weft.Chare):
    def of(self):
        return os.environ["WEFT_PE"], os.environ["MPI_LOCALRANKID"], os.getppid()

async def main():
    places = await weft.Group(Place).of.call()
    parents = list(dict.fromkeys(parent for _, _, parent in places))
    for pe, rank, parent in places:
        print(f"PE {pe} has place {rank} of host {parents.index(parent)}")
    print(os.environ["OMP_NUM_THREADS"], os.environ["A_VARIABLE"], file=sys.stderr)

weft.run(main)
"""


@pytest.mark.parametrize("hosts", ["one:1,two:2,spare:4", "localhost:1,two:2"])
def test_pes_are_numbered_host_by_host(run, write, hosts: str) -> None:
    outcome = run(
        "--hosts", hosts, "-n", 3, "--env", "A_VARIABLE=a b", "--env", "OMP_NUM_THREADS=3", write(CALLS)
    )
    assert (outcome.exit_code, outcome.stderr) == (0, "3 a b\n")
    assert outcome.stdout.splitlines() == [
        "PE 0 has place 0 of host 0",
        "PE 1 has place 0 of host 1",
        "PE 2 has place 1 of host 1",
    ]


def test_output_has_labels_and_comes_whole(run, write) -> None:
    program = write(
        "import os, weft\n"
        "async def main(): pass\n"
        "weft.run(main)\n"
        # At the end, so that most of it is under way when the PE has ended.
        "print('\\n'.join(f\"{os.environ['WEFT_PE']} {line}\" for line in range(20_000)))\n"
    )
    outcome = run("--hosts", "one:2,two:1", "-n", 3, "--label", program)
    lines = outcome.stdout.splitlines()
    for pe in range(3):
        mine = [line for line in lines if line.startswith(f"{pe}: ")]
        assert mine == [f"{pe}: {pe} {line}" for line in range(20_000)]
    assert (outcome.exit_code, outcome.stderr) == (0, "")


def test_variables_of_the_user_hold_on_all_hosts(run, write) -> None:
    program = write("import os\nprint(os.environ['DISPLAY'], os.environ.get('WEFT_JOB_NAME') is not None)\n")
    outcome = run("--hosts", "one", "-n", 1, "--env", "DISPLAY=here", program)
    assert (outcome.stdout, outcome.exit_code) == ("here True\n", 0), outcome.stderr


def test_a_shell_that_is_missing_is_named(run, probe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_REMOTE_SHELL", "/no/such/shell")
    outcome = run("--hosts", "one", "-n", 1, probe, 1)
    assert outcome.stderr.startswith("weft run: /no/such/shell: "), outcome.stderr
    assert outcome.exit_code == 2


@pytest.mark.parametrize(
    ("death", "exit_code", "sentence"),
    [
        ("sys.exit(3)", 3, "exited with code 3"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 139, "was killed by signal 11 (SIGSEGV)"),
    ],
)
def test_the_death_of_a_pe_ends_the_job(run, write, death: str, exit_code: int, sentence: str) -> None:
    program = write(
        "import os, signal, sys, weft\n"
        f"if os.environ['WEFT_PE'] == '1': {death}\n"
        "async def main(): await weft.sleep(60)\nweft.run(main)\n"
    )
    outcome = run("--hosts", "one:1,two:1", "-n", 2, program)
    assert without_pids(outcome.stderr) == f"weft run: PE 1 (pid PID on two) {sentence}; ending the job\n"
    assert outcome.exit_code == exit_code


def test_signals_are_passed_on(start, write) -> None:
    program = write(
        "import os, signal\n"
        "def handler(number, frame):\n"
        "    os.write(1, b'got it\\n')\n"
        "    os._exit(0)\n"
        "signal.signal(signal.SIGUSR2, handler)\n"
        "os.write(1, f\"ready {os.environ['WEFT_PE']} {os.getpid()}\\n\".encode())\n"
        "while True: signal.pause()\n"
    )
    job = start("--hosts", "one:1,two:2", "-n", 3, program)
    job.wait_ready(3)
    job.process.send_signal(signal.SIGUSR2)
    outcome = job.wait()
    assert (outcome.stdout, outcome.stderr, outcome.exit_code) == ("got it\n" * 3, "", 0)


def test_the_pes_end_with_a_launcher_that_is_killed(start, write, job_folder: Path) -> None:
    program = write(
        "import os, signal\n"
        "os.write(1, f\"ready {os.environ['WEFT_PE']} {os.getpid()}\\n\".encode())\n"
        "while True: signal.pause()\n"
    )
    job = start("--hosts", "one:2,two:1", "-n", 3, program)
    job.wait_ready(3)
    # The agents, which remove their folders.
    job.pidfds += [os.pidfd_open(pid) for pid in {parent_of(pid) for pid in job.pids.values()}]
    job.process.kill()
    job.grace_s = 40
    assert job.wait().exit_code == -9
    remove_leftovers(job_folder)


def test_a_host_that_cannot_be_reached_is_named(run, probe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_REMOTE_SHELL", "sh -c 'echo no such host; exit 255'")
    outcome = run("--hosts", "one", "-n", 1, probe, 1)
    reason = "the remote shell exited with code 255; it said: no such host"
    assert outcome.stderr.startswith(f"weft run: the host one cannot be reached: {reason}")
    assert outcome.exit_code == 2


LOSES_A_HOST = """\
import os, signal, sys
import weft

class Cell(weft.Chare):
    def __init__(self):
        self.count = 0
    def add(self, step):
        if (step, weft.recoveries()) == (7, 0) and weft.my_pe() == 2:
            os.kill(os.getppid(), signal.SIGKILL)  # the agent, and with it the PEs of its host
        self.count += step
        return self.count

async def main():
    saved = await weft.recovered()
    cells, step = (saved["cells"], saved["step"]) if saved else (weft.Array(Cell, 8), 0)
    while step < 12:
        counts = await cells.add.call(step)
        step += 1
        if step % 3 == 0:
            await weft.protect({"cells": cells, "step": step})
    print(weft.num_pes(), weft.recoveries(), counts)

weft.run(main)
"""


@pytest.mark.parametrize(("on_loss", "num_pes"), [("restart", 3), ("shrink", 2)])
def test_a_job_outlives_a_lost_host(run, write, job_folder: Path, on_loss: str, num_pes: int) -> None:
    outcome = run("--hosts", "one:1,two:1,three:1", "-n", 3, "--on-loss", on_loss, write(LOSES_A_HOST))
    assert outcome.stdout == f"{num_pes} 1 {[66] * 8}\n", outcome.stderr
    remove_leftovers(job_folder)
    assert "PE 2 (pid PID on three) is lost with its host" in without_pids(outcome.stderr)
    assert outcome.exit_code == 0
