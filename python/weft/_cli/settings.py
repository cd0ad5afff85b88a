"""The settings of a job: options of `weft run` and `weft ranks`, each with its environment variable."""

from __future__ import annotations

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
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
SETTINGS = (
    Setting(
        "--stats",
        "WEFT_STATS",
        "at the end every PE prints its transfers by path, the transports to its peers, and the times of its "
        "entry methods",
    ),
    Setting(
        "--trace",
        "WEFT_TRACE",
        "at the end the PEs write what they did into FILE, which https://ui.perfetto.dev shows",
        metavar="FILE",
    ),
    Setting(
        "--trace-memory",
        "WEFT_TRACE_MIB",
        "how much memory the events of a PE may take, 256 by default; the first events are dropped if there "
        "are more",
        metavar="MIB",
    ),
    Setting(
        "--machine",
        "WEFT_MACHINE",
        "the machine that carries messages: ucx, or loopback for a job of one PE without UCX",
        ("ucx", "loopback"),
    ),
    Setting(
        "--staging",
        "WEFT_STAGING",
        "device: GPU memory is staged only where UCX does not take it (default); host: all of it is staged "
        "through host memory",
        ("device", "host"),
    ),
    Setting(
        "--trusted-network",
        "WEFT_TRUSTED_NETWORK",
        "do not warn if the job uses TCP, through which others on the network can write into its memory",
    ),
    Setting(
        "--check",
        "WEFT_CHECK",
        "channels check that the elements received are those that were sent (float64, int32, ...), and their "
        "extents, and that the bytes of a send do not change before it is over; reductions of MPI, that all "
        "ranks pass the same operator; at the end each PE names the entry methods that have run for 100 ms "
        "without a wait; messages take longer",
    ),
    Setting(
        "--on-loss",
        "WEFT_ON_LOSS",
        "end: a PE that is killed ends the job (default); restart: weft run starts a process in its place, "
        "and main begins again on all PEs, with what it had protected; shrink: the same with one PE fewer; "
        "raise: the job goes on without it, and calls to it fail with weft.LostPE (MPI: "
        "MPIX_ERR_PROC_FAILED); under weft run alone",
        ("end", "restart", "shrink", "raise"),
    ),
    Setting(
        "--drain-on",
        "WEFT_DRAIN_ON",
        "SIGTERM: a PE that gets this signal leaves the job, which goes on, at the next weft.protect that is "
        "complete; with --on-loss restart or shrink",
        ("SIGTERM",),
    ),
    Setting(
        "--hang-report",
        "WEFT_HANG_REPORT",
        "when all PEs have been idle for so many seconds, and nothing can go on, the job says once what "
        "waits for what (default: 10); SECONDS,end: it ends then with exit code 1; off: it says nothing",
        metavar="SECONDS",
    ),
    Setting(
        "--ordered-reductions",
        "WEFT_ORDERED_REDUCTIONS",
        "reductions of chares merge in the order of the elements: sums of floating-point numbers have the "
        "same bits on any number of PEs, and all contributions travel to where the result is",
    ),
    Setting(
        "--peer-memory",
        "WEFT_PEER_MEMORY",
        "on: channels copy GPU memory into the receiver's peer-mapped memory if they can (default); off: "
        "their messages go through UCX or are staged",
        ("on", "off"),
    ),
    Setting(
        "--call-limit",
        "WEFT_CALL_LIMIT",
        "how many MiB of calls may wait for one PE before a call raises an error (default: a quarter of the "
        "PE's share of the memory, at least 256)",
        metavar="MIB",
    ),
    Setting(
        "--lb",
        "WEFT_LB",
        "the strategy that balances the load when all chares of a collection have called at_sync: "
        f"{', '.join(STRATEGIES)}, or one that the program registers (default: greedy_refine)",
        metavar="NAME",
    ),
    Setting(
        "--lb-period",
        "WEFT_LB_PERIOD",
        "seconds between two rounds of load balancing for chares whose class sets balance_periodically "
        "(default: no rounds)",
        metavar="SECONDS",
    ),
    Setting(
        "--lb-verbose",
        "WEFT_LB_VERBOSE",
        "each step of load balancing prints imbalance, moves, bytes and times",
    ),
    Setting(
        "--lb-clock",
        "WEFT_LB_CLOCK",
        "running: the measured load of a chare does not contain the time in which its PE waits for a "
        "processor, because other processes have it (default); wall: it does",
        ("running", "wall"),
    ),
    Setting(
        "--lb-record",
        "WEFT_LB_RECORD",
        "each step of load balancing writes its loads to FILE.1, FILE.2, ..., for `weft lb`; a relative path "
        "is relative to the folder in which the PE runs",
        metavar="FILE",
    ),
    Setting(
        "--gpus",
        "WEFT_GPUS",
        "auto: PE n of a host uses GPU n modulo their number (default); none; or a list such as 0,2 to take "
        "them from",
        metavar="GPUS",
    ),
    Setting(
        "--ranks",
        RANKS,
        "MPI programs: the number of ranks, at least one per PE; a process runs several as user-level "
        "threads (default: one per PE). Under other launchers: weft ranks N",
        metavar="N",
    ),
    Setting(
        "--rank-map",
        "WEFT_MPI_RANK_MAP",
        "the PE of each rank: block (default), round-robin, or a file with one PE number per line",
        metavar="MAP",
    ),
    Setting(
        "--stack-size",
        "WEFT_MPI_STACK_KIB",
        "the size of a rank's stack in KiB; memory that a rank never touches is not used (default: 1024)",
        metavar="KIB",
    ),
    Setting(
        "--share-library",
        "WEFT_MPI_SHARE_LIBRARIES",
        "shared libraries whose variables the ranks of a process may share, such as libhdf5,libnetcdf",
        metavar="NAMES",
    ),
)
