"""A job that a campaign disturbs (tools/recovery_campaign.py, tools/resize_campaign.py)."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from weft._cli.resize import ask
from weft._cli.status import environment_of
from weft.launch.command import UsageError

#: A job hangs if it makes no progress for so long, or has not ended so long after it was to.
HANG_S = 120.0
#: By this variable the processes of a job are found.
MARK = "WEFT_CAMPAIGN_JOB"
CHANGE = re.compile(r"the job goes from \d+ to (\d+) PE")
REFUSAL = re.compile(r"the job keeps its \d+ PE")


class Job:
    """A job under `weft run --on-loss restart`, with a folder of its own for all that it writes."""

    def __init__(self, num_pes: int, command: Sequence[str], folder: Path) -> None:
        """Starts the job of the program and its arguments."""
        self.folder = folder
        self._first_num_pes = num_pes
        self._environment: dict[str, str] = {}  # of a PE, if one was seen
        (folder / "tmp").mkdir()
        self._files = [(folder / name).open("w+") for name in ("out", "err")]
        launcher = [sys.executable, "-m", "weft", "run", "-n", str(num_pes), "--on-loss", "restart"]
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [*launcher, *command],
            stdout=self._files[0],
            stderr=self._files[1],
            start_new_session=True,
            env={**os.environ, MARK: str(folder), "TMPDIR": str(folder / "tmp")},
        )

    @property
    def stdout(self) -> str:
        return (self.folder / "out").read_text()

    @property
    def stderr(self) -> str:
        return (self.folder / "err").read_text()

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def recoveries(self) -> int:
        """How often the launcher has said that the job begins again after losses."""
        return self.stderr.count("the job begins again")

    @property
    def resizes(self) -> int:
        """How often the launcher has said that the job gets another number of PEs."""
        return len(CHANGE.findall(self.stderr))

    @property
    def refusals(self) -> int:
        """How often the launcher has said that the job keeps its number of PEs."""
        return len(REFUSAL.findall(self.stderr))

    @property
    def num_pes(self) -> int:
        """The number of PEs that the job has, or gets."""
        changes = CHANGE.findall(self.stderr)
        return int(changes[-1]) if changes else self._first_num_pes

    def pes(self) -> dict[int, int]:
        """The processes of the PEs that there are now."""
        found = {}
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
            for pid in children.split():
                environment = environment_of(int(pid))
                if "WEFT_PE" in environment:
                    found[int(environment["WEFT_PE"])] = int(pid)
                    self._environment = environment
        return found

    def kill(self, pid: int) -> bool:
        """Kills a PE. Returns whether it was there."""
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def resize(self, num_pes: int) -> bool:
        """Asks for another number of PEs. Returns whether the launcher has accepted."""
        if not self._environment:
            self.pes()
        with contextlib.suppress(UsageError):  # it has not started, or has ended
            return ask(self._environment.get("WEFT_BOOTSTRAP", ""), num_pes) == ""
        return False

    def wait(self, limit_s: float = HANG_S) -> int | None:
        """The exit code; None if it hangs. Then it has printed what it waits for, and is killed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(limit_s)
        self.process.send_signal(signal.SIGUSR1)
        time.sleep(3)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return None

    def leftovers(self) -> list[str]:
        """The processes, files and folders of shared memory that the job has left."""
        found = [f"process {pid}" for pid in self._processes()]
        found += [f"file {path}" for path in (self.folder / "tmp").rglob("*")]
        segments = self._environment.get("UCX_POSIX_DIR", "")
        return [*found, f"folder {segments}"] if os.path.exists(segments) else found

    def _processes(self) -> Iterator[str]:
        for folder in Path("/proc").glob("[0-9]*"):
            if environment_of(int(folder.name)).get(MARK) == str(self.folder):
                with contextlib.suppress(OSError):  # it has ended
                    yield f"{folder.name} {(folder / 'cmdline').read_text()!r}"

    def close(self) -> None:
        """Closes its files."""
        for file in self._files:
            file.close()
