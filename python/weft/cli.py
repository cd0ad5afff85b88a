"""The `weft` command: run, ranks, info, lb, cmake-dir, mpicc, mpicxx, mpi-bin, mpi4py-wheel.

weft-bench adds bench and study.

Imports are inside the functions that need them: `weft run` starts fast, also without the extension module.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

_RUN_DESCRIPTION = """\
Starts N processes (PEs) of a program on this host and ends them together. The program is a C++ binary, or a
.py file that runs with this Python. Behind " : -n N" another program of the same job may follow. On a cluster
start the same program with the resource manager's own launcher (srun, prterun, mpiexec)."""

_RANKS_DESCRIPTION = """\
Several ranks of an MPI program per process, under the launcher of a cluster. The launcher starts the
processes, and `weft ranks` in each of them runs its share of the N ranks:

    srun --mpi=pmix -N 4 --ntasks-per-node=8 weft ranks 128 ./program its arguments

On one host, `weft run --ranks N` does the same without another launcher."""

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


@dataclass(frozen=True)
class _Setting:
    """An option of `weft run` that sets an environment variable. A switch sets it to 1."""

    option: str
    variable: str
    help: str
    choices: tuple[str, ...] | None = None
    metavar: str | None = None

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Makes it an option."""
        text = f"{self.help} ({self.variable})"
        if self.choices is not None:
            parser.add_argument(self.option, dest=self.variable, choices=self.choices, help=text)
        elif self.metavar is not None:
            parser.add_argument(self.option, dest=self.variable, metavar=self.metavar, help=text)
        else:
            parser.add_argument(self.option, dest=self.variable, action="store_const", const="1", help=text)


# As in src/balance/strategy_table.cpp. The launcher does not load the extension module. It does not know the
# strategies that the program registers: the PEs refuse an unknown name.
STRATEGIES = ("none", "greedy", "refine", "greedy_refine", "diffusion", "rotate", "random")

RANKS = "WEFT_MPI_RANKS"

# The options of `weft run`. `weft ranks` has them too, except the number of ranks.
_SETTINGS = (
    _Setting(
        "--stats",
        "WEFT_STATS",
        "at the end every PE prints its transfers by path, the transports to its peers, and the times of its "
        "entry methods",
    ),
    _Setting(
        "--machine",
        "WEFT_MACHINE",
        "the machine that carries messages: ucx, or loopback for a job of one PE without UCX",
        ("ucx", "loopback"),
    ),
    _Setting(
        "--staging",
        "WEFT_STAGING",
        "device: GPU memory is staged only where UCX does not take it (default); host: all of it is staged "
        "through host memory",
        ("device", "host"),
    ),
    _Setting(
        "--trusted-network",
        "WEFT_TRUSTED_NETWORK",
        "do not warn if the job uses TCP, through which others on the network can write into its memory",
    ),
    _Setting(
        "--check",
        "WEFT_CHECK",
        "channels check that the elements received are those that were sent (float64, int32, ...), and their "
        "extents; reductions of MPI, that all ranks pass the same operator; messages take longer",
    ),
    _Setting(
        "--peer-memory",
        "WEFT_PEER_MEMORY",
        "on: channels copy GPU memory into the receiver's peer-mapped memory if they can (default); off: "
        "their messages go through UCX or are staged",
        ("on", "off"),
    ),
    _Setting(
        "--call-limit",
        "WEFT_CALL_LIMIT",
        "how many MiB of calls may wait for one PE before a call raises an error (default: a quarter of the "
        "PE's share of the memory, at least 256)",
        metavar="MIB",
    ),
    _Setting(
        "--lb",
        "WEFT_LB",
        "the strategy that balances the load when all chares of a collection have called at_sync: "
        f"{', '.join(STRATEGIES)}, or one that the program registers (default: greedy_refine)",
        metavar="NAME",
    ),
    _Setting(
        "--lb-period",
        "WEFT_LB_PERIOD",
        "seconds between two rounds of load balancing for chares whose class sets balance_periodically "
        "(default: no rounds)",
        metavar="SECONDS",
    ),
    _Setting(
        "--lb-verbose",
        "WEFT_LB_VERBOSE",
        "each step of load balancing prints imbalance, moves, bytes and times",
    ),
    _Setting(
        "--lb-clock",
        "WEFT_LB_CLOCK",
        "running: the measured load of a chare does not contain the time in which its PE waits for a "
        "processor, because other processes have it (default); wall: it does",
        ("running", "wall"),
    ),
    _Setting(
        "--lb-record",
        "WEFT_LB_RECORD",
        "each step of load balancing writes its loads to FILE.1, FILE.2, ..., for `weft lb`; a relative path "
        "is relative to the folder in which the PE runs",
        metavar="FILE",
    ),
    _Setting(
        "--gpus",
        "WEFT_GPUS",
        "auto: PE n of a host uses GPU n modulo their number (default); none; or a list such as 0,2 to take "
        "them from",
        metavar="GPUS",
    ),
    _Setting(
        "--ranks",
        RANKS,
        "MPI programs: the number of ranks, at least one per PE; a process runs several as user-level "
        "threads (default: one per PE). Under other launchers: weft ranks N",
        metavar="N",
    ),
    _Setting(
        "--rank-map",
        "WEFT_MPI_RANK_MAP",
        "the PE of each rank: block (default), round-robin, or a file with one PE number per line",
        metavar="MAP",
    ),
    _Setting(
        "--stack-size",
        "WEFT_MPI_STACK_KIB",
        "the size of a rank's stack in KiB; memory that a rank never touches is not used (default: 1024)",
        metavar="KIB",
    ),
    _Setting(
        "--share-library",
        "WEFT_MPI_SHARE_LIBRARIES",
        "shared libraries whose variables the ranks of a process may share, such as libhdf5,libnetcdf",
        metavar="NAMES",
    ),
)

_EPILOG = """\
The environment variable in brackets has the same effect as the option, under other launchers too. Those of
virtual ranks (WEFT_MPI_...) are for weft run and weft ranks.

set by weft run unless set already:
  PYTHONHASHSEED                 a random number, the same on all PEs
  UCX_MEM_BISTRO_GRACE_DURATION  0: UCX does not wait for other threads when it is loaded
  UCX_POSIX_DIR                  a folder in /dev/shm, removed when the job has ended
  UCX_MM_FIFO_SIZE, UCX_MM_RX_BUFS_GROW
                                 small queues, if /dev/shm has little room for the PEs

set by weft run for each PE, not to be changed:
  WEFT_NUM_PES                   the number of PEs
  WEFT_PE                        the PE's number, from 0
  WEFT_PROGRAM                   the number of the PE's program (MPI_APPNUM), in a job of several
  WEFT_BOOTSTRAP                 the launcher's socket
  WEFT_LAUNCHER_PID              the launcher's process number
  WEFT_OUTER_PMIX                the PMIx process inside which weft run itself was started

for measurements and tests of Weft itself:
  WEFT_MESSAGING_PATH            tagged or active: how payloads of entry methods travel
  WEFT_PGAS_MAPPING              off: no PE maps segments of another one
  WEFT_EMULATED_FAULTS           makes memory of kind emulated fail

exit code: 0, that of the first PE that ended with another one, or 128 + the signal that killed a PE;
2 if the job could not be started"""


class _Parser(argparse.ArgumentParser):
    """Errors are one sentence; the usage is for --help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


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
    parser = _Parser(prog="weft", description="GPU-aware, message-driven parallel programming.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    _add_run(commands)
    _add_ranks(commands)
    _add_info(commands)
    _add_lb(commands)
    _add_cmake_dir(commands)
    _add_mpi_bin(commands)
    _add_mpi4py_wheel(commands)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["mpicc"], ["mpicxx"]) and words[1:] not in (["-h"], ["--help"]):
        from weft.launch.mpi_compiler import main as compile_program

        return compile_program(words[0], words[1:])  # every option is the compiler's
    _add_compilers(commands)
    if words[:1] not in (["run"], ["ranks"], ["info"], ["lb"], ["cmake-dir"], ["mpi-bin"], ["mpi4py-wheel"]):
        _add_measuring(commands, words)  # it takes its time to import
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


def _add_run(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "run",
        help="run a program on N PEs of this host",
        usage="weft run -n N [options] program [arguments] [: -n N program [arguments]]...",
        description=_RUN_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # Other launchers say -np.
    parser.add_argument("-n", "-np", dest="num_pes", metavar="N", help="number of PEs")
    for setting in _SETTINGS:
        setting.add_to(parser)
    parser.add_argument("--hosts", "--host", "--hostfile", dest="hosts", help=argparse.SUPPRESS)
    parser.add_argument("program", nargs="?", help="a C++ binary or a .py file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed to the program")
    parser.set_defaults(function=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    from weft.launch.command import UsageError, argv_of_pes, check_choice, check_gpus
    from weft.launch.environment import pe_environment
    from weft.launch.job import Job
    from weft.launch.virtual_ranks import with_virtual_ranks

    try:
        if options.hosts is not None:
            raise UsageError(
                "`weft run` starts PEs on this host only; to use other hosts start the same program with the "
                "resource manager's launcher, for example `srun -n 8 program` or `mpiexec -n 8 program`"
            )
        if options.program is None or options.num_pes is None:
            raise UsageError("say how many PEs and which program: weft run -n N program [arguments]")
        argvs = argv_of_pes(options.num_pes, options.program, options.arguments)
        environment = pe_environment(os.environ)
        for setting in _SETTINGS:
            value = getattr(options, setting.variable)
            if value is not None:
                environment[setting.variable] = value
            if setting.choices is not None:
                check_choice(setting.variable, environment.get(setting.variable), setting.choices)
        check_gpus(environment.get("WEFT_GPUS", "auto"))
        return Job(with_virtual_ranks(argvs, environment), environment).run()
    except UsageError as error:
        print(f"weft run: {error}", file=sys.stderr)
        return 2


def _add_ranks(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "ranks",
        help="run an MPI program with N ranks in the processes of another launcher",
        usage="weft ranks N [options] program [arguments]",
        description=_RANKS_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("num_ranks", metavar="N", help="number of ranks, at least one per process")
    for setting in _SETTINGS:
        if setting.variable != RANKS:
            setting.add_to(parser)
    parser.add_argument("program", help="a C or C++ binary that uses MPI")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed to the program")
    parser.set_defaults(function=_ranks, parser=parser)


def _ranks(options: argparse.Namespace) -> int:
    from weft.launch.command import UsageError, program_argv
    from weft.launch.virtual_ranks import run_host

    environment = {**os.environ, RANKS: options.num_ranks}
    for setting in _SETTINGS:
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


def _add_info(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser("info", help="version, UCX and its transports, memory kinds, GPUs")
    parser.set_defaults(function=_info)


def _info(options: argparse.Namespace) -> int:
    from weft.launch.info import info_lines

    print("\n".join(info_lines()))
    return 0


def _add_lb(commands: argparse._SubParsersAction[_Parser]) -> None:
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


def _add_cmake_dir(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "cmake-dir",
        help="print the folder of the CMake package, for find_package(weft)",
        description="Prints the folder with weft-config.cmake: cmake -Dweft_DIR=$(weft cmake-dir) ...",
    )
    parser.set_defaults(function=_cmake_dir, parser=parser)


def _cmake_dir(options: argparse.Namespace) -> int:
    from pathlib import Path

    from weft.launch.cmake_package import main as print_folder

    return print_folder(Path(__file__).parent)


def _add_mpi4py_wheel(commands: argparse._SubParsersAction[_Parser]) -> None:
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


def _add_mpi_bin(commands: argparse._SubParsersAction[_Parser]) -> None:
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


def _add_compilers(commands: argparse._SubParsersAction[_Parser]) -> None:
    for name, language in (("mpicc", "C"), ("mpicxx", "C++")):
        commands.add_parser(
            name,
            help=f"compile an MPI program in {language}",
            usage=f"weft {name} [--show] [options of the compiler]",
            description=f"Runs the {language} compiler with the folder of <mpi.h> and with libmpi_abi.so.1. "
            "--show prints the command line instead.",
        )


def _add_measuring(commands: argparse._SubParsersAction[_Parser], words: Sequence[str]) -> None:
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
