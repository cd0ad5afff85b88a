"""mpi4py between two ranks: Put or Get and Flush on a window of MPI, and Fetch_and_op; host memory.

What `mpi_rma.cpp` measures, from Python. ``--way`` is put or get. A window of pgas_flood is 100 operations
and one Flush. A rank that does not operate waits in Barrier.
"""

import itertools
import time

import numpy as np
from measuring import FLOOD_WINDOW, argument_parser, pin, report
from mpi4py import MPI


def places(step, array):
    """Its parts for the operations, in turn, each with its offset."""
    size = step.size_bytes
    return itertools.cycle([(array[i * size : (i + 1) * size], i * size) for i in range(step.buffers)])


def operate(window, peer, operation, own, count, per_flush):
    for _ in range(count):
        for _ in range(per_flush):
            local, offset = next(own)
            operation(local, peer, (offset, local.nbytes, MPI.BYTE))
        window.Flush(peer)


def fetch_add(window, peer, count):
    one, before = np.ones(1, np.uint64), np.zeros(1, np.uint64)
    for _ in range(count):
        window.Fetch_and_op(one, before, peer, 0, MPI.SUM)
        window.Flush(peer)


def measure(comm, bench, step, is_put):
    rank = comm.Get_rank()
    local = np.full(step.size_bytes * step.buffers, 1 if is_put else 2, np.uint8)
    window = MPI.Win.Allocate(local.nbytes, 1, comm=comm)
    remote = np.frombuffer(window.tomemory(), np.uint8)
    remote[:] = 2 if is_put else 1
    window.Lock_all(MPI.MODE_NOCHECK)
    comm.Barrier()
    operation, own = window.Put if is_put else window.Get, places(step, local)
    per_flush = FLOOD_WINDOW if "flood" in bench else 1

    def exchange(count):
        if bench == "pgas_fetch_add":
            fetch_add(window, 1 - rank, count)
        else:
            operate(window, 1 - rank, operation, own, count, per_flush)

    is_active = rank == 0 or bench == "pgas_flood_both"
    if is_active:
        exchange(step.warmup)
    comm.Barrier()
    start = time.perf_counter()
    if is_active:
        exchange(step.iterations)
    if bench == "pgas_flood_both":
        comm.Barrier()
    elapsed_s = time.perf_counter() - start
    comm.Barrier()
    receives = bench == "pgas_flood_both" or rank == (1 if is_put else 0)
    arrived = remote if is_put else local
    if receives and bench != "pgas_fetch_add" and int(arrived[step.size_bytes - 1]) != 1:
        print(f"rank {rank} does not have what was sent: {step}", flush=True)
        comm.Abort(1)
    if rank == 0:
        report(bench, step, elapsed_s)
    window.Unlock_all()
    del remote, arrived  # views of the window
    window.Free()


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--way", choices=["put", "get"], default="put")
    arguments = parser.parse_args()
    comm = MPI.COMM_WORLD
    pin(comm.Get_rank())
    for step in arguments.steps:
        measure(comm, arguments.bench, step, arguments.way == "put")


main()
