"""Small subcommands: info, lb, trace, cmake-dir, compilers, mpi-bin, mpi4py-wheel; those of weft-bench."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from weft._cli.parser import Parser

_LB_DESCRIPTION = """\
Shows what each load-balancing strategy would do with the loads in FILE. No job is started, nothing moves."""

_LB_EPILOG = """\
columns:
  imbalance       max / average - 1 of the times of the PEs, before and after
  max             the time of the most loaded PE after the step
  moves, moved    the objects that change their PE, and their bytes
  external        bytes that objects on different PEs exchange, before and after
  decision        the time that the strategy takes, the median of 5 runs; the moves themselves are not in it

FILE.py:FUNCTION runs the file, so keep strategies in a file that does not call weft.run().

exit code: 0, or 2 if the file cannot be read or a strategy is not known or fails"""


def add_info(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser("info", help="version, UCX and its transports, memory kinds, GPUs")
    parser.set_defaults(function=_info)


def _info(options: argparse.Namespace) -> int:
    from weft.launch.info import info_lines

    print("\n".join(info_lines()))
    return 0


def add_lb(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "lb",
        help="compare load-balancing strategies on a file of recorded loads",
        usage="weft lb FILE [--strategy NAME]...",
        description=_LB_DESCRIPTION,
        epilog=_LB_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="loads in the text format of docs/load-balancing.md")
    parser.add_argument(
        "--strategy",
        dest="strategies",
        action="append",
        default=[],
        metavar="NAME",
        help="a strategy to compare: a name, or FILE.py:FUNCTION for a function of a snapshot, see "
        "weft.load_balancing; may be given several times (default: all strategies of Weft)",
    )
    parser.set_defaults(function=_lb, parser=parser)


def _lb(options: argparse.Namespace) -> int:
    from weft.launch.load_balancing import LoadFileError, comparison_lines

    try:
        print("\n".join(comparison_lines(options.file, options.strategies)))
    except LoadFileError as error:
        print(f"weft lb: {error}", file=sys.stderr)
        return 2
    return 0


def add_trace(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "trace",
        help="print the summary of a trace of weft run --trace",
        description="Prints where the time of a job went: by PE and by entry method, grain sizes, the "
        "longest waits, the chain of causes, messages and transfers. https://ui.perfetto.dev shows the file.",
    )
    parser.add_argument("file", metavar="FILE", help="what weft run --trace FILE has written")
    parser.add_argument("--json", metavar="FILE", help="write the numbers to this file too")
    parser.add_argument("--plot", metavar="FILE", help="draw how busy the PEs were, as .png, .svg or .pdf")
    parser.add_argument(
        "--elements", metavar="FILE", help="write a trace with a track for each element to this file"
    )
    parser.set_defaults(function=_trace, parser=parser)


def _trace(options: argparse.Namespace) -> int:
    # Tables cost time to import, which `weft run` should not pay.
    from pathlib import Path

    from weft._trace.command import print_summary

    names = (options.json, options.plot, options.elements)
    return print_summary(Path(options.file), *(None if name is None else Path(name) for name in names))


def add_cmake_dir(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "cmake-dir",
        help="print the folder of the CMake package, for find_package(weft)",
        description="Prints the folder with weft-config.cmake: cmake -Dweft_DIR=$(weft cmake-dir) ...",
    )
    parser.set_defaults(function=_cmake_dir, parser=parser)


def _cmake_dir(options: argparse.Namespace) -> int:
    from pathlib import Path

    from weft.launch.cmake_package import main as print_folder

    return print_folder(Path(__file__).parents[1])


def add_mpi4py_wheel(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "mpi4py-wheel",
        help="build mpi4py for Weft's MPI library, and print the path of the wheel",
        usage="weft mpi4py-wheel [--output DIR]",
        description="Builds mpi4py from its sources on the package index, once, and prints the path of the "
        "wheel. One wheel serves every Python from 3.10 on. Needs a C compiler and pip; takes minutes.",
    )
    parser.add_argument(
        "--output", metavar="DIR", default=".", help="where the wheel is, or comes (default: this folder)"
    )
    parser.set_defaults(function=_mpi4py_wheel, parser=parser)


def _mpi4py_wheel(options: argparse.Namespace) -> int:
    from weft.launch.mpi4py_wheel import main as build_wheel

    return build_wheel(options.output)


def add_mpi_bin(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "mpi-bin",
        help="print a folder with programs named mpicc, mpicxx, mpiexec and mpirun",
        description="Prints a folder with programs that build systems look for: mpicc, mpicxx and mpic++ run "
        "`weft mpicc` and `weft mpicxx`, mpiexec and mpirun run `weft run`. Put it first in PATH.",
    )
    parser.set_defaults(function=_mpi_bin, parser=parser)


def _mpi_bin(options: argparse.Namespace) -> int:
    from weft.launch.mpi_programs import make_programs

    try:
        print(make_programs(os.environ))
    except OSError as error:
        print(f"weft mpi-bin: {error.filename}: {error.strerror}; set XDG_CACHE_HOME", file=sys.stderr)
        return 2
    return 0


def add_compilers(commands: argparse._SubParsersAction[Parser]) -> None:
    for name, language in (("mpicc", "C"), ("mpicxx", "C++")):
        commands.add_parser(
            name,
            help=f"compile an MPI program in {language}",
            usage=f"weft {name} [--show] [options of the compiler]",
            description=f"Runs the {language} compiler with the folder of <mpi.h> and with libmpi_abi.so.1. "
            "--show prints the command line instead.",
        )


def add_measuring(commands: argparse._SubParsersAction[Parser], words: Sequence[str]) -> None:
    """Adds `bench` and `study`, which are in a package of their own: benchmarks/weft_bench."""
    import importlib.util

    if importlib.util.find_spec("weft_bench") is not None:
        for module in ("weft_bench.cli", "weft_bench.study.cli"):
            importlib.import_module(module).add_parser(commands)
    elif words[:1] in (["bench"], ["study"]):
        print(
            f"weft {words[0]}: the package weft-bench is not installed; in a clone of Weft run "
            "`pip install ./benchmarks`",
            file=sys.stderr,
        )
        sys.exit(2)
