"""PIC with mpi4py: the problem and the kernels of pic.py, one block per rank, without load balancing.

mpiexec -n 2 python miniapps/pic/pic_mpi4py.py --verify
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from mpi4py import MPI

from pic_options import Result, describe, make_parser, pin, problem_of, report
from pic_particles import Particles
from pic_problem import Problem, UserError
from pic_verification import Found, examine, judge

USAGE = "mpiexec -n RANKS python pic_mpi4py.py [options]"


class Exchange:
    """Sends particles to all partners and receives theirs, in a buffer that is reused."""

    def __init__(self, comm: MPI.Comm, particles: Particles) -> None:
        self._comm, self._particles = comm, particles
        self._incoming = np.empty(0)
        self._nothing = np.empty(0)

    def step(self) -> None:
        sends = [
            self._comm.Isend(self._nothing if leaving is None else leaving, partner)
            for partner, leaving in self._particles.move()
        ]
        status = MPI.Status()
        for partner in self._particles.partners:
            self._comm.Probe(partner, status=status)
            number = status.Get_count(MPI.DOUBLE)
            if number > len(self._incoming):
                self._incoming = np.empty(2 * number)
            incoming = self._incoming[:number]
            self._comm.Recv(incoming, partner)
            if number > 0:
                self._particles.put_in(incoming)
        MPI.Request.Waitall(sends)


def solve(comm: MPI.Comm, options: argparse.Namespace, problem: Problem) -> Result:
    particles = Particles(problem, comm.Get_rank(), options.kernel)
    exchange = Exchange(comm, particles)
    for _ in range(options.warmup):
        exchange.step()
    particles.compute_s = 0.0
    comm.Barrier()
    begin = time.perf_counter()
    for _ in range(options.steps):
        exchange.step()
    comm.Barrier()
    overall_s = time.perf_counter() - begin

    computed_s = comm.allreduce(particles.compute_s)
    steps = options.warmup + options.steps
    found = comm.allgather(examine(problem, particles.values[:, : particles.count], steps))
    return Result(
        overall_s=overall_s,
        compute_s=computed_s / comm.Get_size(),
        balancing_s=0.0,
        num_syncs=0,
        checksum=sum(found, Found()).checksum,
        verdict=judge(problem, found) if options.verify else None,
    )


def main() -> int:
    comm = MPI.COMM_WORLD
    is_first = comm.Get_rank() == 0
    try:
        options = make_parser("pic_mpi4py.py", USAGE).parse_args()
        problem = problem_of(options, comm.Get_size())
        if is_first:
            print(
                describe(problem, "Python with mpi4py", comm.Get_size(), 1, options.steps, options.warmup),
                flush=True,
            )
        if options.pin:
            pin(comm.Get_rank())
        result = solve(comm, options, problem)
    except UserError as error:
        if is_first:
            print(f"pic_mpi4py.py: {error} (see pic_mpi4py.py --help)", file=sys.stderr)
        return 2
    if is_first:
        print(report(problem, result, comm.Get_size(), 1, options.steps))
    return 1 if result.verdict is not None and not result.verdict.correct else 0


if __name__ == "__main__":
    sys.exit(main())
