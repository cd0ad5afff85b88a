"""Arrays on devices in mpi4py's calls: ``device_arrays.py cupy|torch|numba|emulated``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()
COUNT = 20_000


class Library:
    """What the program needs of an array library."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.make: Callable[[numpy.ndarray], Any]
        self.read: Callable[[Any], numpy.ndarray]
        getattr(self, f"use_{name}")()

    def use_emulated(self) -> None:
        import cupy  # the stand-in of tests/python/mpi/emulated_arrays

        self.make = lambda values: cupy.array(values, values.dtype)
        self.read = lambda array: array[:]
        self.synchronize = lambda: None

    def use_cupy(self) -> None:
        import cupy

        self.make = cupy.asarray
        self.read = cupy.asnumpy
        self.synchronize = lambda: cupy.cuda.get_current_stream().synchronize()

    def use_torch(self) -> None:
        import torch

        self.make = lambda values: torch.from_numpy(values).cuda()
        self.read = lambda array: array.cpu().numpy()
        self.synchronize = lambda: torch.cuda.current_stream().synchronize()

    def use_numba(self) -> None:
        from numba import cuda

        self.make = cuda.to_device
        self.read = lambda array: array.copy_to_host()
        self.synchronize = lambda: cuda.default_stream().synchronize()


def numbers(rank: int) -> numpy.ndarray:
    return numpy.arange(COUNT, dtype=numpy.float32) + rank


def check(array: numpy.ndarray, expected: numpy.ndarray) -> None:
    if not numpy.array_equal(array, expected):
        print(f"rank {RANK}: wrong values: {array[:8]} instead of {expected[:8]}", file=sys.stderr)
        COMM.Abort(3)


def calls(library: Library) -> None:
    out = library.make(numbers(RANK))
    into = library.make(numpy.zeros(COUNT, numpy.float32))
    library.synchronize()
    COMM.Sendrecv(out, (RANK + 1) % SIZE, 0, into, (RANK - 1) % SIZE, 0)
    check(library.read(into), numbers((RANK - 1) % SIZE))
    COMM.Allreduce(out, into)
    check(library.read(into), sum(numbers(rank) for rank in range(SIZE)))
    every = library.make(numpy.zeros(COUNT * SIZE, numpy.float32))
    library.synchronize()
    COMM.Allgather(out, every)
    check(library.read(every), numpy.concatenate([numbers(rank) for rank in range(SIZE)]))
    COMM.Bcast(out, 0)
    check(library.read(out), numbers(0))
    # A column of 100 of a matrix, from the device into host memory and back.
    column = MPI.FLOAT.Create_vector(COUNT // 100, 1, 100).Commit()
    matrix = library.make(numbers(RANK))
    host = numpy.zeros(COUNT // 100, numpy.float32)
    library.synchronize()
    COMM.Sendrecv([matrix, 1, column], RANK, 0, host, RANK, 0)
    check(host, numbers(RANK)[::100])
    COMM.Sendrecv(-host, RANK, 0, [matrix, 1, column], RANK, 0)
    expected = numbers(RANK)
    expected[::100] *= -1
    check(library.read(matrix), expected)
    column.Free()


def with_stream(pointer: int) -> MPI.Comm:
    """A communicator whose transfers come after the work that is queued on the stream."""
    info = MPI.Info.Create({"weft_stream": str(pointer)})
    comm = COMM.Dup(info)
    info.Free()
    return comm


def cupy_stream() -> None:
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    comm = with_stream(stream.ptr)
    into = cupy.zeros(1 << 24, cupy.float32)
    cupy.cuda.get_current_stream().synchronize()
    with stream:
        out = cupy.zeros(1 << 24, cupy.float32)
        for _ in range(200):
            out += 1
        comm.Sendrecv(out, (RANK + 1) % SIZE, 0, into, (RANK - 1) % SIZE, 0)  # nothing is synchronised
    check(cupy.asnumpy(into), numpy.full(1 << 24, 200, numpy.float32))
    comm.Free()


def torch_stream() -> None:
    import torch

    stream = torch.cuda.Stream()
    comm = with_stream(stream.cuda_stream)
    into = torch.zeros(1 << 24, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        out = torch.zeros(1 << 24, device="cuda")
        for _ in range(200):
            out += 1
        comm.Sendrecv(out, (RANK + 1) % SIZE, 0, into, (RANK - 1) % SIZE, 0)  # nothing is synchronised
    check(into.cpu().numpy(), numpy.full(1 << 24, 200, numpy.float32))
    comm.Free()


def main() -> None:
    name = sys.argv[1]
    calls(Library(name))
    if name == "cupy":
        cupy_stream()
    if name == "torch":
        torch_stream()
    if RANK == 0:
        print(f"{name} arrays in the calls of {SIZE} ranks: as expected")


main()
