"""Collective operations of mpi4py, as weft_collectives.py has them: a broadcast ends with a barrier."""

import json
import sys
import time

import numpy as np
from measuring import Step
from mpi4py import MPI

BENCH, STEPS = sys.argv[1], [Step.parse(text) for text in sys.argv[2:]]
comm = MPI.COMM_WORLD


def broadcasts(size_bytes, count):
    data = np.full(size_bytes, 1 if comm.Get_rank() == 0 else 0, np.uint8)
    for _ in range(count):
        comm.Bcast(data, 0)
        comm.Barrier()
    assert data[-1] == 1


def allreduces(size_bytes, count):
    values = np.full(size_bytes // 8, comm.Get_rank() + 1.0)
    total = np.empty_like(values)
    for _ in range(count):
        comm.Allreduce(values, total)
    assert total[-1] == comm.Get_size() * (comm.Get_size() + 1) / 2


exchange = broadcasts if BENCH == "broadcast" else allreduces
for step in STEPS:
    exchange(step.size_bytes, step.warmup)
    comm.Barrier()
    start = time.perf_counter()
    exchange(step.size_bytes, step.iterations)
    elapsed_s = time.perf_counter() - start
    if comm.Get_rank() == 0:
        figure = {
            "size_bytes": step.size_bytes,
            "metric": "time_us",
            "value": elapsed_s / step.iterations * 1e6,
        }
        print(json.dumps(figure), flush=True)
