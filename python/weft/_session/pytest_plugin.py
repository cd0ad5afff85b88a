"""The pytest plugin of Weft: the fixture ``weft_job``. pytest loads it when Weft is installed.

Under ``weft run -n N pytest`` every PE runs all tests, so that jobs of tests are those of the launch. PE 0
reports. The others name their failures on stderr.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

_DEFAULT_PES = 2


@pytest.hookimpl(trylast=True)  # after that of the terminal
def pytest_configure(config: pytest.Config) -> None:
    """Makes the mark known, and PEs other than 0 silent."""
    config.addinivalue_line("markers", "weft(pes=N): how many PEs jobs of the fixture weft_job have")
    number = _number_of_pe()
    if number > 0:
        reporter: Any = config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter._tw._file = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        config.pluginmanager.register(_OtherPe(number))


class _OtherPe:
    """Names the failures of a PE that does not report."""

    def __init__(self, number: int) -> None:
        self._number = number

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._say(f"{report.nodeid} failed ({report.when})", report.longreprtext)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._say(f"{report.nodeid} failed (collection)", report.longreprtext)

    def pytest_internalerror(self, excrepr: object) -> None:
        self._say("internal error of pytest", str(excrepr))

    def _say(self, what: str, why: str) -> None:
        lines = why.strip().splitlines() or [""]
        os.write(2, f"PE {self._number}: {what}: {lines[-1]}\n".encode(errors="replace"))


def _number_of_pe() -> int:
    # PMIx has no such sign of a job of Weft: each pytest reports there.
    launched = os.environ.get("WEFT_BOOTSTRAP", "").startswith("/")
    number = os.environ.get("WEFT_PE", "0")
    return int(number) if launched and number.isdigit() else 0


@pytest.fixture
def weft_job(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Runs jobs: ``weft_job(main)`` or ``weft_job(main, pes=4)`` returns what ``main()`` returned.

    main is a coroutine function or an ordinary one. The job ends when it returns. What it raises is raised.
    ``weft_job`` may be called several times. The number of PEs is that of the call, else of the mark
    ``@pytest.mark.weft(pes=4)``, else of the launch, else 2. While a session is open (`weft.session`), main
    runs in it.

    Without a launcher this process is PE 0. The others are fresh processes, to which classes and functions of
    test modules travel by value. Under a launcher (``weft run -n 4 pytest``) the call is collective: main
    runs on PE 0, and all PEs get its outcome. A test that asks for another number of PEs than the launch has
    is skipped.
    """
    marker = request.node.get_closest_marker("weft")
    marked = None if marker is None else marker.kwargs.get("pes")

    def run(main: Callable[[], Any], *, pes: int | None = None) -> Any:
        from weft._session.run_on import check_pes, launched_pes
        from weft._session.session import open_session

        wanted = pes if pes is not None else marked
        if (session := open_session()) is not None:
            return session.run(main, pes=wanted)
        launched = launched_pes()
        if launched is None:
            from weft._session.run_on import run_and_return

            return run_and_return(check_pes(_DEFAULT_PES if wanted is None else wanted), main)
        if wanted is not None and launched not in (0, check_pes(wanted)):
            pytest.skip(f"the test needs {wanted} PEs, and the launch has {launched}")
        from weft._session.everywhere import run_everywhere

        return run_everywhere(main)

    return run
