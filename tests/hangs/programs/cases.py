"""Tables of small programs, wrong and right ones. Each is a job of its own; all run in the same processes.

Each wrong one hangs in its main until the watch for hangs reports it; the causes that the report names
must hold the true one. Each right one waits for something that comes, and nothing may be reported; the watch
must have looked meanwhile.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import weft
from weft import _core, pgas


class Case(NamedTuple):
    main: Callable[..., Any]  # of weft.run; of pgas.run, if it takes a team
    texts: tuple[str, ...]  # of a wrong program: of a cause, and others of the report
    is_wrong: bool
    takes_team: bool
    num_pes: int
    least_looks: int  # of the watch, while a right program runs


CASES: dict[str, Case] = {}
# A right program runs again if the watch has looked too seldom, because PEs waited for their cores.
MOST_RUNS = 20


def wrong(*texts: str, pes: int = 2, team: bool = False) -> Callable[[Any], Any]:
    def add(main: Any) -> Any:
        CASES[main.__name__] = Case(main, texts, True, team, pes, 0)
        return main

    return add


def right(pes: int = 2, team: bool = False, looks: int = 1) -> Callable[[Any], Any]:
    """`looks`: the watch looks at least so often. 0 only if PE 0 is not idle for long."""

    def add(main: Any) -> Any:
        CASES[main.__name__] = Case(main, (), False, team, pes, looks)
        return main

    return add


def causes(report: str) -> list[str]:
    return re.findall(r"^  cause: (.*)$", report, re.MULTILINE)


def check(name: str, case: Case, report: str) -> None:
    report = report.replace(os.path.dirname(os.path.abspath(__file__)) + os.sep, "")
    missing = [text for text in case.texts if text not in report]
    if not case.is_wrong:
        print(f"FALSE {name} is reported: {report}", flush=True)
    elif missing:
        print(f"WRONG {name}: the report lacks {missing}: {report}", flush=True)
    elif not any(case.texts[0] in cause for cause in causes(report)):
        print(f"WRONG {name}: '{case.texts[0]}' is no cause: {report}", flush=True)
    else:
        print(f"named {name}", flush=True)


def run(name: str, case: Case) -> None:
    def hang(report: str) -> None:
        check(name, case, report)
        weft.exit()

    async def main(*team: Any) -> None:
        if weft.my_pe() == 0:
            _core._on_hang(hang)
        await case.main(*team)
        for _ in range(MOST_RUNS if case.least_looks > 0 else 0):
            looks_are_missing = _core._num_hang_looks() < case.least_looks
            if not (await team[0].broadcast(looks_are_missing, 0) if team else looks_are_missing):
                break
            await case.main(*team)
        if weft.my_pe() != 0:
            return
        if case.is_wrong:
            print(f"WRONG {name} has ended", flush=True)
        elif _core._num_hang_looks() < case.least_looks:
            print(f"FALSE {name}: the watch has looked {_core._num_hang_looks()} times", flush=True)
        else:
            print(f"right {name}", flush=True)

    pgas.run(main) if case.takes_team else weft.run(main)


def run_all() -> None:
    """The arguments of the program are `wrong`, `right` or names of cases."""
    chosen = sys.argv[1:]
    num_pes = _core._launched_pes()
    for name, case in CASES.items():
        kind = "wrong" if case.is_wrong else "right"
        if name in chosen or (kind in chosen and case.num_pes == num_pes):
            run(name, case)
    if os.environ["WEFT_PE"] == "0":
        print("done", flush=True)
