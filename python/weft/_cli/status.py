"""`weft status`: asks a running job what its PEs wait for, and where each PE is."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from weft._cli.frames import entry_method, with_names
from weft._cli.parser import Parser

_DESCRIPTION = """\
Asks the job of the process PID, which is `weft run` or PE 0, what its PEs wait for, and prints the answer:
for each PE of this host since when it is idle or runs an entry method, the share of a core that it uses and
its stack, then what waits for what. A PE that computes, or is in a call of C, has its stack here all the
same. The job writes the same to its stderr."""

_EPILOG = "exit code: 0, or 2 if the process cannot be asked"

# How long a job has for its answer: its PEs answer within a second, or are named as busy.
_LIMIT_S = 3.0
# The marks of src/job/report_signal.cpp.
_BEGIN = "weft: what the PEs of the job wait for\n"
_END = "weft: end of the report\n"


def add_status(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "status",
        help="ask a running job what its PEs wait for",
        usage="weft status PID",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pid", metavar="PID", type=int, help="the number of the process")
    parser.set_defaults(function=_status, parser=parser)


class _Pe(NamedTuple):
    number: int
    pid: int
    file: Path  # what it writes when it is asked
    size: int  # of the file, before
    cpu_s: float  # used until then
    activity: str = ""  # what it does since when, as its status page tells; empty if that is not known


def _status(options: argparse.Namespace) -> int:
    from weft.launch.signals import handles

    pid: int = options.pid
    try:
        if not handles(pid, signal.SIGUSR1):  # it would die
            raise ProcessLookupError
        pes = sorted(_pes_of(pid))
        asked = [pe for pe in pes if pe.pid == pid] or pes  # `weft run` passes the signal on to all
        if asked and asked[0].pid == pid and asked[0].number != 0:
            print(
                f"weft status: process {pid} is PE {asked[0].number}, and PE 0 makes the report; give the "
                "number of `weft run` or of PE 0",
                file=sys.stderr,
            )
            return 2
        asked_at = time.monotonic()
        os.kill(pid, signal.SIGUSR1)
    except (ProcessLookupError, PermissionError):
        print(
            f"weft status: process {pid} is no job of yours that can be asked; give the number of `weft "
            "run`, or of PE 0 under another launcher, whose program has no handler of SIGUSR1",
            file=sys.stderr,
        )
        return 2
    if not pes:
        print(f"process {pid} is asked: its job writes to its stderr what its PEs wait for")
        return 0
    report = _wait_for_answer(asked, asked_at + _LIMIT_S)
    for pe in pes:
        print(_text_of(pe, time.monotonic() - asked_at))
    print(report, end="")
    return 0


def _pes_of(pid: int) -> Iterator[_Pe]:
    """The PEs on this host of the job whose `weft run` or PE is the process."""
    from weft.launch.signals import handles

    activities = _activities()
    processes = sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    environments = {process: environment_of(process) for process in processes}
    launchers = {environment.get("WEFT_LAUNCHER_PID") for environment in environments.values()}
    # A `weft run` that a PE has started has the variable of the outer job.
    launcher = str(pid) if str(pid) in launchers else environments.get(pid, {}).get("WEFT_LAUNCHER_PID")
    found: set[int] = set()
    for process, environment in environments.items():
        number = environment.get("WEFT_PE", "")
        if launcher is None or environment.get("WEFT_LAUNCHER_PID") != launcher or not number.isdecimal():
            continue
        activity = activities.get(process)
        if activity is not None:
            number = str(activity.pe)  # another one than at its start, if the job has been resized
        file = Path(environment.get("UCX_POSIX_DIR", "")) / f"status-{number}"
        # A program that a PE has started has the same variables, and begins later.
        if int(number) in found or not handles(process, signal.SIGUSR1) or not file.is_file():
            continue
        found.add(int(number))
        yield _Pe(
            int(number),
            process,
            file,
            file.stat().st_size,
            _cpu_s(process),
            activity.text if activity is not None else "",
        )


class _Activity(NamedTuple):
    pe: int
    text: str  # empty if it is neither idle nor in one entry method
    began_ns: int


def _activities() -> dict[int, _Activity]:
    """For each process that is a PE of this host its number, and how long it has been idle or in a method."""
    from weft._top import pages
    from weft._top.samples import Reading

    found: dict[int, _Activity] = {}
    sources = pages.find()
    for source in sources:
        with contextlib.suppress(pages.DamagedPageError):
            reading = Reading(source.read(), time.monotonic_ns())
            page = reading.page
            seconds = (reading.read_ns - (page.idle_since_ns or page.now_ns)) * 1e-9
            text = ""
            if page.idle_since_ns:
                text = f"idle for {seconds:.1f} s"
            elif reading.is_silent:
                text = f"in one entry method, or outside of Weft, for {seconds:.1f} s"
            before = found.get(source.pid)
            if before is None or before.began_ns <= page.began_ns:  # not that of an earlier incarnation
                found[source.pid] = _Activity(page.pe, text, page.began_ns)
    pages.close_all(sources)
    return found


def environment_of(pid: int) -> dict[str, str]:
    """The variables with which the process began; none of a process that has gone, or of another user."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _new_text(pe: _Pe) -> str:
    try:
        with pe.file.open("rb") as file:
            file.seek(pe.size)
            return file.read().decode(errors="replace")
    except OSError:  # the job has ended
        return ""


def _wait_for_answer(asked: list[_Pe], until: float) -> str:
    """Waits for the report of PE 0 and the stacks of all, which a PE may write later. Returns the report."""
    before: list[str] = []
    while time.monotonic() < until and asked[0].file.exists():
        texts = [_new_text(pe) for pe in asked]
        has_report = asked[0].number != 0 or _report_in(texts[0]) != ""
        if has_report and all(texts) and texts == before:  # a stack is written in pieces
            break
        before = texts
        time.sleep(0.02)  # between two looks at the files
    missing = "weft: PE 0, which gathers what the PEs wait for, has not answered: see its stack\n"
    return (before and _report_in(before[0])) or missing


def _report_in(text: str) -> str:
    """The first report in what PE 0 has written; empty if there is none yet."""
    begin = text.find(_BEGIN)
    end = text.find(_END, begin)
    return text[begin:end] if 0 <= begin < end else ""


def _text_of(pe: _Pe, seconds: float) -> str:
    share = max(0.0, _cpu_s(pe.pid) - pe.cpu_s) / seconds
    stack = with_names(_new_text(pe).partition(_BEGIN)[0])
    use = f"used {share:.0%} of a core in the last {seconds:.1f} s"
    activity = f", {pe.activity}" if pe.activity else ""
    method = entry_method(stack)
    runs = f"  runs {method}\n" if method else ""
    return f"PE {pe.number}, process {pe.pid}{activity}, {use}:\n{runs}{stack}"
