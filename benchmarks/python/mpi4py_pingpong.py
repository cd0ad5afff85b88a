"""mpi4py between two ranks: Send and Recv of arrays for latency, Isend and Irecv for windows.

The arrays are NumPy's, or CuPy's with --memory cuda, where the MPI must know GPUs: what arrived is looked at
after each size. Rank 1 takes the second GPU that it sees, if there are two.
"""

import itertools
import time

import numpy as np
from measuring import WINDOW, argument_parser, numbers_of_buffers, pin, report
from mpi4py import MPI


def ping_pong(comm, outgoing, incoming, round_trips):
    sent, received = next(outgoing), next(incoming)
    if comm.Get_rank() == 0:
        for _ in range(round_trips):
            comm.Send(sent, 1)
            comm.Recv(received, 1)
    else:
        for _ in range(round_trips):
            comm.Recv(received, 0)
            comm.Send(sent, 0)


def windows(comm, outgoing, incoming, count):
    acknowledgement = np.ones(0, np.uint8)
    for _ in range(count):
        if comm.Get_rank() == 0:
            MPI.Request.Waitall([comm.Isend(next(outgoing), 1) for _ in range(WINDOW)])
            comm.Recv(acknowledgement, 1)
        else:
            MPI.Request.Waitall([comm.Irecv(next(incoming), 0) for _ in range(WINDOW)])
            comm.Send(acknowledgement, 0)


def cupy_on_gpu(rank):
    """CuPy, with the GPU of `rank` current."""
    import cupy

    cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
    return cupy


def main():
    arguments = argument_parser(__doc__, memories=("host", "cuda")).parse_args()
    comm = MPI.COMM_WORLD
    pin(comm.Get_rank())
    arrays = np if arguments.memory == "host" else cupy_on_gpu(comm.Get_rank())
    exchange = ping_pong if arguments.bench == "latency" else windows
    for step in arguments.steps:
        num_out, num_in = numbers_of_buffers(step, comm.Get_rank() == 0)
        sent = [arrays.full(step.size_bytes, 1, np.uint8) for _ in range(num_out)]
        received = [arrays.full(step.size_bytes, 2, np.uint8) for _ in range(num_in)]
        outgoing, incoming = itertools.cycle(sent), itertools.cycle(received)
        if arrays is not np:  # MPI knows nothing of streams
            arrays.cuda.get_current_stream().synchronize()
        comm.Barrier()
        exchange(comm, outgoing, incoming, step.warmup)
        start = time.perf_counter()
        exchange(comm, outgoing, incoming, step.iterations)
        elapsed_s = time.perf_counter() - start
        if (arguments.bench == "latency" or comm.Get_rank() == 1) and int(received[0][-1]) != 1:
            print(f"rank {comm.Get_rank()} has not received what was sent: {step}", flush=True)
            comm.Abort(1)
        if comm.Get_rank() == 0:
            report(arguments.bench, step, elapsed_s)


main()
