"""The command `weft top`: a live view of a job in the terminal, or one sample as a table or as JSON."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator

from rich.console import Console
from rich.live import Live

from weft._top.jobs import JobInfo, Watcher, jobs
from weft._top.pages import status_of
from weft._top.samples import PeSample
from weft._top.view import COLUMNS, HELP, picture
from weft.launch.signals import handles

# Lines of the view that are not about PEs.
_OTHER_LINES = 14


def top(job: int | None, *, interval_s: float, once: bool, as_json: bool) -> int:
    """Shows the job of the process `job`, or the only one of this user. Returns the exit code."""
    found, problems = jobs()
    chosen = [info for info in found if job is None or info.has_process(job)]
    if len(chosen) != 1:
        return _say_which(job, found, chosen, problems)
    watcher = Watcher(chosen[0].job)
    try:
        if as_json or once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            return _show_once(watcher, interval_s, as_json)
        return _Screen(watcher, interval_s).run()
    finally:
        watcher.close()


def _say_which(job: int | None, found: list[JobInfo], chosen: list[JobInfo], problems: list[str]) -> int:
    """Which jobs there are, if it is not clear which one is meant."""
    for problem in problems:
        print(f"weft top: {problem}", file=sys.stderr)
    if not chosen:
        which = "no job of yours runs on this host" if job is None else f"process {job} is in no job of yours"
        print(f"weft top: {which}", file=sys.stderr)
        return 2
    print("weft top: give the number of the job, weft top JOB:", file=sys.stderr)
    for info in chosen:
        seen = "" if info.missing == 0 else f", {len(info.pids)} of them on this host"
        print(f"  {info.number}  {info.num_pes} PEs{seen}: {_command_of(min(info.pids.values()))}")
    return 2


def _command_of(pid: int) -> str:
    """The command line of a process, for people."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return "?"
    text = " ".join(os.fsdecode(word) for word in words if word)
    return "".join(character if character.isprintable() else "?" for character in text)[:100]


def _show_once(watcher: Watcher, interval_s: float, as_json: bool) -> int:
    watcher.sample()
    time.sleep(interval_s)
    samples = watcher.sample()
    info = watcher.info
    if not samples or info is None:
        print("weft top: the job has ended", file=sys.stderr)
        return 1
    if as_json:
        print(json.dumps(as_record(info, samples, watcher.problems)))
    else:
        console = Console(width=None if sys.stdout.isatty() else 160)
        console.print(picture(info, samples, notes=watcher.problems, width=console.size.width))
    return 0


def as_record(info: JobInfo, samples: list[PeSample], problems: list[str]) -> dict[str, object]:
    """The JSON object of `weft top --json`; docs/top.md lists its keys."""
    return {
        "job": info.number,
        "num_pes": info.num_pes,
        "problems": problems,
        "pes": [dataclasses.asdict(pe) for pe in samples],
    }


class _Screen:
    """The live view and its keys."""

    def __init__(self, watcher: Watcher, interval_s: float) -> None:
        self._watcher = watcher
        self._interval_s = interval_s
        self._samples: list[PeSample] = []
        self._info: JobInfo | None = None
        self._sort = 0
        self._is_reversed = False
        self._note = ""
        self._console = Console()

    def run(self) -> int:
        """Until q or Ctrl-C is pressed, or the job ends."""
        with contextlib.suppress(KeyboardInterrupt), _single_keys():
            with Live(console=self._console, screen=True, auto_refresh=False) as live:
                while self._take_sample():
                    end_s = time.monotonic() + self._interval_s
                    self._draw(live)
                    while (left_s := end_s - time.monotonic()) > 0:
                        if (key := _key(left_s)) == "q":
                            return 0
                        self._handle(key)
                        self._draw(live)
            self._console.print("weft top: the job has ended")
        return 0

    def _take_sample(self) -> bool:
        self._samples = self._watcher.sample()
        self._info = self._watcher.info
        return bool(self._samples)

    def _draw(self, live: Live) -> None:
        rows = max(1, self._console.size.height - _OTHER_LINES)
        notes = [*self._watcher.problems, *filter(None, [self._note]), "", HELP]
        live.update(
            picture(
                self._info,
                self._samples,
                sort=self._sort,
                is_reversed=self._is_reversed,
                notes=notes,
                rows=rows,
                width=self._console.size.width,
            ),
            refresh=True,
        )

    def _handle(self, key: str) -> None:
        if key == "s":
            self._sort = (self._sort + 1) % len(COLUMNS)
        elif key == "r":
            self._is_reversed = not self._is_reversed
        elif key == "w" and self._info is not None:
            self._note = ask_what_waits(self._info)


def ask_what_waits(info: JobInfo) -> str:
    """Asks the job what its PEs wait for, as `weft status` does. Returns what to tell the user."""
    for pid in _askable(info):
        if handles(pid, signal.SIGUSR1):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGUSR1)
                return f"process {pid} is asked: the job writes to its stderr what its PEs wait for"
    return "the job cannot be asked: its program handles SIGUSR1 itself, or PE 0 is on another host"


def _askable(info: JobInfo) -> Iterator[int]:
    """The launcher, which passes the signal on to its PEs, and PE 0, which may be the launcher's parent."""
    first = info.pids.get(0)
    if info.launcher_pid and status_of(info.launcher_pid, "PPid") != str(first):
        yield info.launcher_pid
    if first is not None:
        yield first


@contextlib.contextmanager
def _single_keys() -> Iterator[None]:
    """Keys come at once and are not shown."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _key(timeout_s: float) -> str:
    """The key that is pressed within that time; empty if none is. The end of the input is "q"."""
    ready, _, _ = select.select([sys.stdin], [], [], timeout_s)
    if not ready:
        return ""
    return os.read(sys.stdin.fileno(), 1).decode(errors="replace") or "q"
