"""Hosts that lack something: room in /dev/shm, a terminal, large files."""

from __future__ import annotations

import os
import pty
import re
import resource
import select
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HANG_S = 150.0

IDLE = """\
import os, weft
class Idle(weft.Chare):
    def hello(self):
        os.write(1, f"ready {weft.my_pe()} {os.getpid()}\\n".encode())
async def main():
    await weft.Group(Idle).hello.call()
    await weft.Future()
weft.run(main)
"""

# --- /dev/shm


@pytest.fixture
def with_shm(start_command, shm_of_its_own: Callable[[str], list[str]]) -> Callable[..., object]:
    """with_shm("size=20m", command...) runs it with a /dev/shm of its own."""
    return lambda options, *command: start_command([*shm_of_its_own(options), *map(str, command)]).wait()


RUN = (sys.executable, "-m", "weft", "run", "-n")


@pytest.mark.parametrize(("options", "num_pes"), [("size=64m", 32), ("size=20m", 4), ("size=5m", 4)])
def test_a_small_file_system_suffices(with_shm, fault_probe: Path, options: str, num_pes: int) -> None:
    outcome = with_shm(options, *RUN, num_pes, fault_probe, "exit", 0)
    assert (outcome.exit_code, outcome.stderr) == (0, "")


def test_one_pe_needs_none(with_shm, fault_probe: Path) -> None:
    for options in ("size=64k", "ro"):
        outcome = with_shm(options, *RUN, 1, fault_probe, "exit", 0)
        assert (outcome.exit_code, outcome.stderr) == (0, "")


@pytest.mark.parametrize("num_pes", [2, 4])
def test_what_is_missing_is_said(with_shm, fault_probe: Path, num_pes: int) -> None:
    outcome = with_shm("size=512k", *RUN, num_pes, fault_probe, "exit", 0)
    assert outcome.exit_code == 1, outcome.stderr
    said = rf"^weft: .*[0-9.]+ MiB of 0\.5 MiB are free in /dev/shm/.* 0\.6 MiB .* {num_pes} PEs of this host"
    assert re.search(said, outcome.stderr, re.MULTILINE), outcome.stderr


def test_a_file_system_that_cannot_be_written_is_named(with_shm, fault_probe: Path) -> None:
    outcome = with_shm("ro", *RUN, 2, fault_probe, "exit", 0)
    assert outcome.exit_code == 1, outcome.stderr
    assert "/dev/shm cannot be written (Read-only file system)" in outcome.stderr


# --- Files


def test_a_limit_of_file_sizes_is_said(start, fault_probe: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    outcome = start("-n", 2, fault_probe, "exit", 0, preexec_fn=limit).wait()
    assert outcome.exit_code == 1, outcome.stderr
    assert "ulimit -f" in outcome.stderr


# --- The terminal


class Terminal:
    """A command in a terminal of its own, whose window can be closed."""

    def __init__(self, command: list[str], typed: str = "") -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(command[0], command)
        self.pidfds = [os.pidfd_open(self.pid)]
        os.write(self._fd, typed.encode())

    def wait_ready(self, num_pes: int) -> None:
        """Returns when so many PEs have said that they are ready."""
        seen = ""
        while len(found := set(re.findall(r"ready (\d+) (\d+)\r", seen))) < num_pes:
            assert select.select([self._fd], [], [], HANG_S)[0], f"the job is not ready: {seen}"
            seen += os.read(self._fd, 4096).decode()
        self.pidfds += [os.pidfd_open(int(pid)) for _, pid in found]

    def close_window(self) -> None:
        os.close(self._fd)

    def are_gone(self) -> bool:
        """Whether all processes end."""
        return all(select.select([pidfd], [], [], HANG_S)[0] for pidfd in self.pidfds)

    def clean_up(self) -> None:
        for pidfd in self.pidfds:
            try:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.close(pidfd)
        os.waitpid(self.pid, 0)


@pytest.fixture
def open_terminal() -> Iterator[Callable[..., Terminal]]:
    terminals: list[Terminal] = []

    def start(command: list[object], typed: str = "") -> Terminal:
        terminals.append(Terminal([str(word) for word in command], typed))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.clean_up()


@pytest.fixture
def idle_program(tmp_path: Path) -> Path:
    path = tmp_path / "idle.py"
    path.write_text(IDLE, encoding="utf-8")
    return path


@pytest.mark.parametrize("language", ["C++", "Python"])
@pytest.mark.parametrize("launched", ["alone", "by weft run", "from a shell", "in the background of a shell"])
def test_a_job_ends_with_its_terminal(
    open_terminal, fault_probe: Path, idle_program: Path, language: str, launched: str
) -> None:
    program = [fault_probe, "idle"] if language == "C++" else [sys.executable, idle_program]
    job = [*RUN, 2, *(program if language == "C++" else program[1:])]
    if launched == "alone":
        terminal, num_pes = open_terminal(program), 1
    elif launched == "by weft run":
        terminal, num_pes = open_terminal(job), 2
    else:
        line = shlex.join(map(str, job)) + ("&" if "background" in launched else "")
        terminal, num_pes = open_terminal(["bash", "--norc", "-i"], line + "\n"), 2
    terminal.wait_ready(num_pes)
    terminal.close_window()
    assert terminal.are_gone(), "the job goes on without its terminal"


def test_a_job_that_ignores_hangups_goes_on(start, fault_probe: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    job = start("-n", 1, fault_probe, "idle", preexec_fn=ignore)
    job.wait_ready(1)
    os.kill(job.pids[0], signal.SIGHUP)
    status = Path(f"/proc/{job.pids[0]}/status").read_text(encoding="ascii")
    ignored = int(re.search(r"^SigIgn:\s*([0-9a-f]+)", status, re.MULTILINE)[1], 16)
    assert ignored >> (signal.SIGHUP - 1) & 1, "nohup has no effect"
    job.process.terminate()
    job.wait()
