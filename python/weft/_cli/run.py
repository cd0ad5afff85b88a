"""`weft run`: starts the PEs of a job, on this host or on several."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from weft._cli.parser import Parser
from weft._cli.settings import SETTINGS

if TYPE_CHECKING:
    from weft._top.metrics import MetricsServer
    from weft.launch.hosts.hosts import Hosts

_RUN_DESCRIPTION = """\
Starts N processes (PEs) of a program on this host, or with --hosts on several, and ends them together. The
program is a C++ binary, or a .py file that runs with this Python. Behind " : -n N" another program of the
same job may follow. On a cluster with a resource manager start the same program with its own launcher (srun,
prterun, mpiexec)."""

_EPILOG = """\
The environment variable in brackets has the same effect as the option, under other launchers too. Those of
virtual ranks (WEFT_MPI_...) are for weft run and weft ranks.

set by weft run unless set already:
  PYTHONHASHSEED                 a random number, the same on all PEs
  UCX_MEM_BISTRO_GRACE_DURATION  0: UCX does not wait for other threads when it is loaded
  UCX_POSIX_DIR                  a folder in /dev/shm, removed when the job has ended
  UCX_MM_FIFO_SIZE, UCX_MM_RX_BUFS_GROW
                                 small queues, if /dev/shm has little room for the PEs
  OMP_NUM_THREADS                with several PEs: the cores that the launcher may use, divided by the PEs
  PYTHONUNBUFFERED               1, with --label and --output

set by the user for weft run --hosts:
  WEFT_REMOTE_SHELL              a command in place of ssh, to which the host and a command line are added

set by weft run for each PE, not to be changed:
  WEFT_NUM_PES                   the number of PEs
  WEFT_PE                        the PE's number at the start of its process, from 0; see weft.my_pe()
  WEFT_PROGRAM                   the number of the PE's program (MPI_APPNUM), in a job of several
  WEFT_BOOTSTRAP                 the launcher's socket
  WEFT_LAUNCHER_PID              the launcher's process number
  WEFT_JOB_NAME                  a name of the job, with --hosts
  WEFT_MPI_PARENT                the port to which processes of MPI_Comm_spawn connect
  WEFT_INCARNATION               how often the job had begun again when the PE was started (--on-loss)
  WEFT_OUTER_PMIX                the PMIx process inside which weft run itself was started
  WEFT_TIME_LIMIT                when the job is ended (--timeout)

set by weft.run(main, pes=N) and weft.session for their PEs, not to be changed:
  WEFT_ATTACHED                  1 on PE 0, which has started the other PEs
  WEFT_SESSION_FOLDER            where definitions are that travel by value

for measurements and tests of Weft itself:
  WEFT_MESSAGING_PATH            tagged or active: how payloads of entry methods travel
  WEFT_PGAS_MAPPING              off: no PE maps segments of another one
  WEFT_EMULATED_FAULTS           makes memory of kind emulated fail

exit code: 0, that of the first PE that ended with another one, or 128 + the signal that killed a PE;
2 if the job could not be started; 124 after --timeout"""


def add_run(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "run",
        help="run a program on N PEs, of this host or of several",
        allow_abbrev=False,  # an option of the program may begin like one of these
        usage="weft run -n N [options] {program | -m module} [arguments] [: -n N program [arguments]]...",
        description=_RUN_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # Other launchers say -np.
    parser.add_argument("-n", "-np", dest="num_pes", metavar="N", help="number of PEs")
    _add_launcher_options(parser)
    for setting in SETTINGS:
        setting.add_to(parser)
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        help="a Python module in place of a program, as in python -m, and its arguments",
    )
    parser.add_argument("--host", "--hostfile", dest="other_hosts", help=argparse.SUPPRESS)
    parser.add_argument("program", nargs="?", help="a C++ binary or a .py file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed to the program")
    parser.set_defaults(function=_run, parser=parser)


def _add_launcher_options(parser: Parser) -> None:
    """The options that concern the launcher alone, which therefore have no environment variable."""
    parser.add_argument(
        "--hosts",
        metavar="HOST[:N],...",
        help="the hosts of the PEs, reached by ssh, and how many PEs each gets; without numbers equal shares",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        help="a job that runs longer is ended with exit code 124; each Python PE says first where it is",
    )
    parser.add_argument(
        "--label", action="store_true", help="each line of output begins with the number of its PE"
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="stdout and stderr of each PE go to a file in DIR: pe-0.txt, pe-1.txt, ...",
    )
    parser.add_argument(
        "--bind",
        choices=("core", "none"),
        default="none",
        help="core: each PE runs only on its share of the cores, and the map is printed; none: the system "
        "chooses (default)",
    )
    parser.add_argument(
        "--charm4py",
        action="store_true",
        help="`import charm4py` in the program is Weft's package of that name (needs greenlet)",
    )
    parser.add_argument(
        "--metrics",
        metavar="PORT",
        help="what the PEs do, for Prometheus, at this port of the loopback interface, or at ADDRESS:PORT; "
        "weft top shows it in a terminal",
    )
    parser.add_argument(
        "--env",
        dest="variables",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an environment variable of the PEs; may be given several times",
    )


def _run(options: argparse.Namespace) -> int:
    from weft._cli.charmrun import charm4py_environment
    from weft.launch.command import (
        UsageError,
        argv_of_pes,
        check_choice,
        check_gpus,
        parse_timeout,
        parse_variables,
    )
    from weft.launch.environment import pe_environment
    from weft.launch.job import Job
    from weft.launch.losses.resizes import recovery_of
    from weft.launch.output import output_of
    from weft.launch.trace import merge, prepare
    from weft.launch.virtual_ranks import with_virtual_ranks

    try:
        if options.other_hosts is not None:
            raise UsageError("name the hosts with --hosts: weft run --hosts a:4,b:4 -n 8 program")
        program = "-m" if options.module is not None else options.program
        if program is None or options.num_pes is None:
            raise UsageError("say how many PEs and which program: weft run -n N program [arguments]")
        argvs = argv_of_pes(options.num_pes, program, options.module or options.arguments)
        environment = pe_environment({**os.environ, **parse_variables(options.variables)})
        if options.charm4py:
            environment = charm4py_environment(environment)
        for setting in SETTINGS:
            value = getattr(options, setting.variable)
            if value is not None:
                environment[setting.variable] = value
            if setting.choices is not None:
                check_choice(setting.variable, environment.get(setting.variable), setting.choices)
        check_gpus(environment.get("WEFT_GPUS", "auto"))
        trace = prepare(environment["WEFT_TRACE"]) if environment.get("WEFT_TRACE") else None
        if trace is not None:
            environment["WEFT_TRACE"] = str(trace)
        recovery = recovery_of(environment)
        if recovery is not None and options.metrics is not None:
            # Its threads must not be there when processes are forked.
            raise UsageError("--metrics cannot be given with --on-loss restart or shrink")
        job = Job(
            with_virtual_ranks(argvs, environment),
            environment,
            output=output_of(options.label, options.output),
            timeout_s=parse_timeout(options.timeout),
            bound=options.bind == "core",
            metrics=_metrics_of(options.metrics),
            recovery=recovery,
            raises=environment.get("WEFT_ON_LOSS") == "raise",
            hosts=_hosts_of(options, len(argvs)),
        )
        code = job.run()
        if trace is not None:
            merge(trace)
        return code
    except UsageError as error:
        print(f"weft run: {error}", file=sys.stderr)
        return 2


def _hosts_of(options: argparse.Namespace, num_pes: int) -> Hosts | None:
    if options.hosts is None:
        return None
    from weft.launch.command import UsageError, parse_variables
    from weft.launch.hosts.host_list import parse_hosts
    from weft.launch.hosts.hosts import Hosts

    if options.metrics is not None:
        raise UsageError("--metrics cannot be given with --hosts: PEs publish it on their own hosts")
    return Hosts(parse_hosts(options.hosts, num_pes), num_pes, parse_variables(options.variables))


def _metrics_of(address: str | None) -> MetricsServer | None:
    """Imports what serves metrics only if it is wanted."""
    if address is None:
        return None
    from weft._top.metrics import MetricsServer

    return MetricsServer(address)
