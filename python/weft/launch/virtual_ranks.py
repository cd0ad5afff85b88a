"""`weft run --ranks` and `weft ranks`: several ranks of an MPI program per PE.

The program weft-mpi-host beside libmpi_abi.so.1 then runs in place of the user's program, and loads that once
per rank (mpi/host). It reads the environment variables below.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import NoReturn

from weft._ucx_hooks import GRACE, NO_THREADS
from weft.launch.command import MAX_PES, UsageError
from weft.launch.losses.recovery import VARIABLE as ON_LOSS
from weft.launch.mpi_compiler import package_folder

HOST = "weft-mpi-host"
MAX_RANKS = 1 << 20
RANKS = "WEFT_MPI_RANKS"
RANK_MAP = "WEFT_MPI_RANK_MAP"
STACK_SIZE = "WEFT_MPI_STACK_KIB"
SHARED_LIBRARIES = "WEFT_MPI_SHARE_LIBRARIES"
# Rank n is PE n with both if there are as many ranks as PEs.
PLAIN_MAPS = ("block", "round-robin")


def parse_ranks(text: str, num_pes: int, name: str = "--ranks") -> int:
    """The number of ranks, as the option or argument `name` gives it.

    Raises:
        UsageError: not a number from `num_pes` to MAX_RANKS.
    """
    try:
        ranks = int(text)
    except ValueError:
        raise UsageError(f"{name} takes the number of MPI ranks, a whole number, not '{text}'") from None
    if ranks < 1:
        raise UsageError(f"{name} {ranks}: a job has at least one rank")
    if ranks < num_pes:
        raise UsageError(
            f"{name} {ranks}: each of the {num_pes} PEs has at least one rank; start fewer PEs (-n)"
        )
    if ranks > MAX_RANKS:
        raise UsageError(f"{name} {ranks}: a job has at most {MAX_RANKS} ranks")
    return ranks


def with_virtual_ranks(argvs: Sequence[list[str]], environment: Mapping[str, str]) -> Sequence[list[str]]:
    """The command line of each PE of the job: `argvs` themselves if each PE has one rank.

    Raises:
        UsageError: the program cannot have virtual ranks, or the settings are wrong.
    """
    text = environment.get(RANKS)
    rank_map = environment.get(RANK_MAP, "block")
    if text is None:
        for name in (RANK_MAP, STACK_SIZE, SHARED_LIBRARIES):
            if name in environment:
                raise UsageError(f"{name} is set, and the number of ranks is not; give it with --ranks N")
        return argvs
    num_pes = len(argvs)
    ranks = parse_ranks(text, num_pes)
    # In a process of its own a rank has no slot, whose memory Weft_protect() protects.
    begins_again = environment.get(ON_LOSS) in ("restart", "shrink")
    if ranks == num_pes and rank_map in PLAIN_MAPS and not begins_again:
        return argvs
    argv = argvs[0]
    if any(other != argv for other in argvs):
        raise UsageError(f"--ranks {ranks}: a job of several programs (':') has one rank for each PE")
    program = _binary_of(argv, f"weft run -n {ranks}")
    host = _host()
    _check(host, program, {**environment, "WEFT_NUM_PES": str(num_pes)})
    return [[host, *argv]] * num_pes


def most_pes(environment: Mapping[str, str]) -> int:
    """The largest number of PEs that a job with that environment, in which it runs, can get."""
    return min(int(environment.get(RANKS, MAX_PES)), MAX_PES)


def run_host(argv: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """This process becomes the one that runs its share of the ranks. Its launcher says which PE it is.

    Raises:
        UsageError: the program cannot have virtual ranks, or the number of ranks is none. What depends on the
            PEs, weft-mpi-host says once for all.
    """
    parse_ranks(environment[RANKS], 1, "the first argument")
    _binary_of(argv, "without `weft ranks`, for example: srun --mpi=pmix -n N python")
    host = _host()
    # As for a program of `weft run`: it has no other threads when UCX is loaded.
    os.execve(host, [host, *argv], {GRACE: NO_THREADS, **with_plain_library_path(environment)})


def with_plain_library_path(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, without the repeated and empty entries of LD_LIBRARY_PATH.

    PRRTE adds some on all hosts but its own. The loader maps memory for each entry before it maps libraries
    (glibc: _dl_init_paths), so these would have other addresses there, and ranks could not move. An empty
    entry names the current folder, where the libraries of a job are not.
    """
    plain = dict(environment)
    path = plain.pop("LD_LIBRARY_PATH", "")
    if folders := [folder for folder in dict.fromkeys(re.split("[:;]", path)) if folder]:
        plain["LD_LIBRARY_PATH"] = ":".join(folders)
    return plain


def _binary_of(argv: Sequence[str], instead: str) -> str:
    program = argv[1] if len(argv) > 1 and argv[1].endswith(".py") else argv[0]
    if program.endswith(".py"):
        raise UsageError(
            f"{program}: a Python program has one rank per process, because a process loads Python and its "
            f"packages once; start as many processes as ranks: {instead} {program}"
        )
    return program


def _host() -> str:
    host = package_folder() / "lib" / HOST
    if not os.access(host, os.X_OK):
        raise UsageError(
            f"{host} does not exist: this Weft was built without virtual ranks. Build it on x86-64, with MPI "
            "and with the static library of Boost.Context (libboost-context-dev), or start one PE per rank "
            "(-n)"
        )
    return str(host)


def _check(host: str, program: str, environment: Mapping[str, str]) -> None:
    """Asks the host once, so that not every PE reports the same."""
    outcome = subprocess.run(
        [host, "--check", program], env=environment, capture_output=True, text=True, check=False
    )
    if outcome.returncode != 0:
        reason = outcome.stderr.strip().removeprefix("weft: ")
        raise UsageError(reason or f"{program}: {HOST} --check ended with {outcome.returncode}")
