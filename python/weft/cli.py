"""The `weft` command: run, ranks, status, top, info, lb, trace, and what builds MPI programs.

weft-bench adds bench and study.

Imports are inside the functions that need them: `weft run` starts fast, also without the extension module.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from weft._cli.completion import complete, words_to_complete
from weft._cli.parser import Parser
from weft._cli.ranks import add_ranks
from weft._cli.resize import add_resize
from weft._cli.run import add_run
from weft._cli.status import add_status
from weft._cli.tools import (
    add_cmake_dir,
    add_compilers,
    add_info,
    add_lb,
    add_measuring,
    add_mpi4py_wheel,
    add_mpi_bin,
    add_trace,
)
from weft._cli.top import add_top


def _open_standard_streams() -> None:
    """Opens /dev/null where the caller has closed one (`weft run ... 2>&-`); the PEs inherit it.

    Otherwise a socket of the job would take its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest free number
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    _open_standard_streams()
    parser = Parser(prog="weft", description="GPU-aware, message-driven parallel programming.")
    parser.add_argument("--version", action="store_true", help="print the version of Weft")
    parser.set_defaults(function=lambda options: _version_or_help(options, parser))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    add_run(commands)
    add_ranks(commands)
    add_status(commands)
    add_resize(commands)
    add_top(commands)
    add_info(commands)
    add_lb(commands)
    add_trace(commands)
    add_cmake_dir(commands)
    add_mpi_bin(commands)
    add_mpi4py_wheel(commands)
    words = words_to_complete() or list(sys.argv[1:] if arguments is None else arguments)
    compiles = words[:1] in (["mpicc"], ["mpicxx"]) and words[1:] not in (["-h"], ["--help"])
    if compiles and words_to_complete() is None:
        from weft.launch.mpi_compiler import main as compile_program

        return compile_program(words[0], words[1:])  # every option is the compiler's
    add_compilers(commands)
    if not words or words[0] not in commands.choices:
        add_measuring(commands, words)  # it takes its time to import
    complete(parser)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        asked = getattr(options, "parser", parser)
        asked.error(f"unknown options: {' '.join(unknown)}")
    try:
        code: int = options.function(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe. The interpreter flushes stdout once more, and that must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _version_or_help(options: argparse.Namespace, parser: Parser) -> int:
    """`weft --version`, and `weft` alone."""
    if options.version:
        import weft

        print(f"weft {weft.__version__}")
    else:
        parser.print_help()
    return 0
