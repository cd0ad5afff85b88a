"""Real jobs: what the tests of this folder start them with."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

# A job of these tests that takes longer hangs.
HANG_S = 150.0
# The end of a job. Much more than the launcher and its PEs need, also if other processes take their cores.
END_WITHIN_S = 40.0


@dataclass
class Outcome:
    """What a job left behind; `seconds` is how long its end was waited for."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float


@dataclass
class StartedJob:
    """A job under way. Programs that are to be acted upon print "ready PE PID".

    `grace_s`: so long a PE may be at its end when the launcher has ended. `weft run` waits for all of them;
    other launchers may end when they have killed them.
    """

    process: subprocess.Popen[str]
    grace_s: float = 0.0
    pids: dict[int, int] = field(default_factory=dict)
    pidfds: list[int] = field(default_factory=list)

    def wait_ready(self, num_pes: int) -> None:
        """Reads output until `num_pes` PEs are ready; remembers who they are."""
        assert self.process.stdout is not None
        while len(self.pids) < num_pes:
            line = self.process.stdout.readline()
            if not line:
                pytest.fail(f"the job ended before it was ready:\n{self.process.communicate()[1]}")
            if match := re.fullmatch(r"ready (\d+) (\d+)\n", line):
                self.pids[int(match[1])] = int(match[2])
        for pid in self.pids.values():
            try:
                self.pidfds.append(os.pidfd_open(pid))
            except ProcessLookupError:
                pass  # it was ready to die

    def wait(self) -> Outcome:
        """Waits for the launcher's end; no PE may be left by then, or after the grace."""
        start = time.monotonic()
        try:
            stdout, stderr = self.process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            pytest.fail("the job hangs")
        seconds = time.monotonic() - start
        assert self.wait_gone(self.grace_s), "a PE outlived its launcher"
        return Outcome(self.process.returncode, stdout, stderr, seconds)

    def wait_gone(self, timeout_s: float) -> bool:
        """True once every PE that was ready has ended."""
        deadline = time.monotonic() + timeout_s
        for pidfd in self.pidfds:
            if not select.select([pidfd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return False
        return True

    def close(self) -> None:
        """Leaves nothing behind, whatever the test did."""
        for pidfd in self.pidfds:
            try:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.close(pidfd)
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


Start = Callable[..., StartedJob]
Run = Callable[..., Outcome]


@pytest.fixture
def job_folder() -> Iterator[Path]:
    """TMPDIR of the jobs; they leave nothing in it."""
    # Short, since a socket's path has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="weft-test-"))
    yield folder
    left = [path.name for path in folder.iterdir()]
    for path in folder.iterdir():
        subprocess.run(["rm", "-r", str(path)], check=True)
    folder.rmdir()
    assert left == [], "files were left behind"


@pytest.fixture
def start_command(job_folder: Path) -> Iterator[Start]:
    """Starts any command line as a job."""
    jobs: list[StartedJob] = []

    def start(argv: Sequence[str], **options: object) -> StartedJob:
        defaults = {
            "env": {**os.environ, "TMPDIR": str(job_folder)},
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        jobs.append(StartedJob(subprocess.Popen(argv, text=True, **{**defaults, **options})))
        return jobs[-1]

    yield start
    for job in jobs:
        job.close()


@pytest.fixture
def start(start_command: Start) -> Start:
    """Starts `weft run` with these arguments."""

    def start_run(*arguments: object, **options: object) -> StartedJob:
        return start_command([sys.executable, "-m", "weft", "run", *map(str, arguments)], **options)

    return start_run


@pytest.fixture
def run(start: Start) -> Run:
    """Starts `weft run` and waits for its end."""

    def run_to_end(*arguments: object, **options: object) -> Outcome:
        return start(*arguments, **options).wait()

    return run_to_end


@pytest.fixture
def shm_of_its_own() -> Callable[[str], list[str]]:
    """What to put in front of a command that gets a /dev/shm of its own, mounted with these options."""
    own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    mount = 'mount -t tmpfs -o "$0" shm /dev/shm && exec "$@"'
    unshare = ["unshare", *own_user, "--mount", "sh", "-c", mount]
    try:
        tried = subprocess.run([*unshare, "size=1m", "true"], capture_output=True, text=True, check=False)
        refusal = tried.stderr if tried.returncode != 0 else ""
    except OSError as error:
        refusal = str(error)
    if refusal:
        pytest.skip(f"NOT TESTED: this user may not mount a file system on /dev/shm: {refusal.strip()}")
    return lambda options: [*unshare, options]


@pytest.fixture(scope="session")
def probe(build_folder: Path) -> Path:
    """programs/bootstrap_probe.cpp; its head says what it does."""
    return build_folder / "tests" / "multiproc" / "bootstrap_probe"


@pytest.fixture(scope="session")
def fault_probe(build_folder: Path) -> Path:
    """programs/fault_probe.cpp; its head says what it does."""
    return build_folder / "tests" / "multiproc" / "fault_probe"
