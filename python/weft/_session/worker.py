"""A PE that PE 0 has started: it runs one job, in which it gets the program's classes when it needs them."""

from __future__ import annotations

import os

from weft import _core
from weft._job.run import run_with
from weft._session.definitions import Definitions
from weft.launch.environment import SESSION_FOLDER


def main() -> None:
    """Runs on PEs other than 0."""
    with Definitions(os.environ.pop(SESSION_FOLDER)):
        run_with(_core._run, _main_of_pe_0)


def _main_of_pe_0() -> None:
    raise AssertionError("main runs on PE 0")
