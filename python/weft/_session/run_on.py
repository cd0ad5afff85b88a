"""weft.run(main, pes=N): one job on this process and N - 1 fresh ones."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from weft import _core
from weft._job.run import Start, run_with
from weft._session.definitions import Definitions
from weft._session.others import MAX_PES, OtherPes
from weft._session.outcome import Outcome

# Hooks of pickling are the process's.
_one_job = threading.Lock()


def launched_pes() -> int | None:
    """How many PEs the launcher of this process has started: None without one, 0 if it does not say.

    Raises:
        weft.Error: a job is running in this process; or the environment is damaged, or is that of a launcher
            whose processes cannot find one another.
        SystemExit: so it is, and process 0 of the launch says why.
    """
    try:
        return _core._launched_pes()
    except _core.Error as error:
        if error.code == "cancelled":
            raise SystemExit(1) from None
        raise


def check_pes(pes: object) -> int:
    """The number of PEs that a program asks for.

    Raises:
        weft.Error: it is no number of PEs.
    """
    if isinstance(pes, bool) or not isinstance(pes, int) or not 1 <= pes <= MAX_PES:
        raise _core.Error(f"pes={pes!r}: give the number of PEs, a whole number from 1 to {MAX_PES}")
    return pes


def check_launch(pes: int, launched: int) -> None:
    """Raises weft.Error if the launch has another number of PEs."""
    if launched not in (0, pes):
        raise _core.Error(
            f"weft.run was called with pes={pes} in a launch of {launched} PEs: leave out pes=, or start "
            f"{pes} PEs (weft run -n {pes}), or start the program without a launcher; with "
            "WEFT_BOOTSTRAP=singleton in its environment, a process of a launch starts PEs of its own"
        )


def run_in_launch(pes: int, main: Callable[[], Any]) -> Callable[[], Any]:
    """`main`, but for a launcher that does not say how many PEs there are: it begins with a check."""

    def checked_main() -> Any:
        check_launch(pes, _core.num_pes())
        return main()

    return checked_main


def run_on(pes: int, main: Callable[[], Any]) -> Any:
    """weft.run(main, pes=pes) without a launcher."""
    outcome = Outcome(main)
    result = run_with_others(pes, _core._run, outcome.start)
    outcome.raise_error()
    return result


def run_and_return(pes: int, main: Callable[[], Any]) -> Any:
    """As run_on, and an ordinary main ends the job too when it returns."""
    outcome = Outcome(main)
    if pes > 1:
        result = run_with_others(pes, _core._run, outcome.value)
    else:
        result = run_with(_core._run, outcome.value)
    outcome.raise_error()
    return result


def run_with_others(pes: int, start: Start, main: Callable[[], Any]) -> Any:
    """Runs a job with `main` on PE 0, this process and thread, and ends the other PEs with it.

    Raises:
        weft.Error: the job ended because of an error on some PE, which is the message.
        SystemExit, KeyboardInterrupt: as weft.run.
    """
    if not _one_job.acquire(blocking=False):
        raise _core.Error("another thread of this process runs or starts a job: a process has one at a time")
    try:
        return _run_with_others(pes, start, main)
    finally:
        _one_job.release()


def _run_with_others(pes: int, start: Start, main: Callable[[], Any]) -> Any:
    others = OtherPes(pes)
    failure: BaseException | None = None
    result = None

    def started_main() -> Any:
        others.leave_environment()
        return main()

    try:
        with Definitions(others.folder):
            others.enter_environment()
            result = run_with(start, started_main)
    except BaseException as error:
        failure = error
    finally:
        others.leave_environment()
        words = others.close()
    if words and isinstance(failure, SystemExit):
        raise _core.Error(words.strip())
    if words:
        print(words, end="", file=sys.stderr)
    if failure is not None:
        raise failure
    return result
