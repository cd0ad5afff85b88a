"""`weft status`: asks a running job what its PEs wait for."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from weft._cli.parser import Parser

_DESCRIPTION = """\
Asks the job of the process PID, which is `weft run` or PE 0, what its PEs wait for. The job writes the report
to its stderr: the stacks of Python PEs, then what waits for what."""

_EPILOG = "exit code: 0, or 2 if the process cannot be asked"


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


def _status(options: argparse.Namespace) -> int:
    from weft.launch.signals import handles

    pid = options.pid
    try:
        if not handles(pid, signal.SIGUSR1):  # it would die
            raise ProcessLookupError
        os.kill(pid, signal.SIGUSR1)
    except (ProcessLookupError, PermissionError):
        print(
            f"weft status: process {pid} is no job of yours that can be asked; give the number of `weft "
            "run`, or of PE 0 under another launcher, whose program has no handler of SIGUSR1",
            file=sys.stderr,
        )
        return 2
    print(f"process {pid} is asked: its job writes to its stderr what its PEs wait for")
    return 0
