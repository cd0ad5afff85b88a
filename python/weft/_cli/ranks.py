"""`weft ranks`: ranks of an MPI program in the processes of another launcher."""

from __future__ import annotations

import argparse
import os
import sys

from weft._cli.parser import Parser
from weft._cli.settings import RANKS, SETTINGS

_RANKS_DESCRIPTION = """\
Several ranks of an MPI program per process, under the launcher of a cluster. The launcher starts the
processes, and `weft ranks` in each of them runs its share of the N ranks:

    srun --mpi=pmix -N 4 --ntasks-per-node=8 weft ranks 128 ./program its arguments

On one host, `weft run --ranks N` does the same without another launcher."""


def add_ranks(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "ranks",
        help="run an MPI program with N ranks in the processes of another launcher",
        allow_abbrev=False,  # an option of the program may begin like one of these
        usage="weft ranks N [options] program [arguments]",
        description=_RANKS_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("num_ranks", metavar="N", help="number of ranks, at least one per process")
    for setting in SETTINGS:
        if setting.variable != RANKS:
            setting.add_to(parser)
    parser.add_argument("program", help="a C or C++ binary that uses MPI")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed to the program")
    parser.set_defaults(function=_ranks, parser=parser)


def _ranks(options: argparse.Namespace) -> int:
    from weft.launch.command import UsageError, program_argv
    from weft.launch.virtual_ranks import run_host

    environment = {**os.environ, RANKS: options.num_ranks}
    for setting in SETTINGS:
        value = getattr(options, setting.variable, None)
        if value is not None:
            environment[setting.variable] = value
    try:
        try:
            argv = program_argv(options.program, options.arguments)
        except UsageError:
            # It may be missing on one host alone. weft-mpi-host says so when it has joined, because not every
            # launcher notices a process that ends before.
            argv = [options.program, *options.arguments]
        run_host(argv, environment)
    except UsageError as error:
        print(f"weft ranks: {error}", file=sys.stderr)
        return 2
