"""Stencil2D on mpi4py: a block per rank, with the kernels, buffers and iterations of stencil2d.py.

    mpiexec -n 2 python miniapps/stencil2d/stencil2d_mpi4py.py --verify

Halos travel by persistent requests, MPI's fastest form of the same exchange: they name the buffers once.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from typing import Any

import numpy as np
from mpi4py import MPI

from field import NUM_SLOTS, Field
from grid import Pair, Problem, UserError, divide, neighbours, range_of
from kernels import HostKernels, Kernels, Values
from options import METHOD, grid_size, make_parser, pin
from report import Result, describe, report, write_json
from verification import examine
from weft_bench.provenance import provenance

PROGRAM = "stencil2d_mpi4py.py"
BARRIERS = f"{METHOD} The barriers are MPI_Barrier."


def make_kernels(comm: MPI.Comm, options: Namespace) -> Kernels:
    """Raises UserError on all ranks if something that --memory or --kernel needs is missing on one."""
    kernels, why = None, ""
    try:
        kernels = make_own_kernels(comm.Get_rank(), options)
    except UserError as error:
        why = str(error)
    if missing := next(filter(None, comm.allgather(why)), ""):
        raise UserError(missing)
    assert kernels is not None
    return kernels


def make_own_kernels(rank: int, options: Namespace) -> Kernels:
    """Those of one rank."""
    if options.memory == "host":
        return HostKernels(options.kernel)
    try:
        import cupy

        from cuda_kernels import CudaKernels
    except ImportError as error:
        raise UserError(f"--memory cuda needs CuPy: pip install cupy-cuda13x ({error})") from None
    try:
        cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise UserError(f"--memory cuda: {error}") from None
    stream = cupy.cuda.Stream(non_blocking=True)
    return CudaKernels(stream, stream, lambda shape: cupy.empty(shape, np.float64))


class Block:
    """The block of this rank."""

    def __init__(self, comm: MPI.Comm, kernels: Kernels, problem: Problem) -> None:
        index = divmod(comm.Get_rank(), problem.blocks[1])
        around = neighbours(problem, index)
        self._kernels = kernels
        self._field = Field(kernels, range_of(problem, index), around)
        self._slot = 0
        ranks = {side: row * problem.blocks[1] + column for side, (row, column) in around.items()}
        field = self._field
        self.wait_for_kernels()
        self._sends, self._receives = (
            [[start(halos[slot][side], rank) for side, rank in ranks.items()] for slot in range(NUM_SLOTS)]
            for start, halos in ((comm.Send_init, field.outgoing), (comm.Recv_init, field.incoming))
        )

    def run(self, iterations: int) -> None:
        field, start, wait = self._field, MPI.Prequest.Startall, MPI.Request.Waitall
        sends, receives = self._sends, self._receives
        start(receives[self._slot])
        for left in range(iterations - 1, -1, -1):
            slot = self._slot
            field.pack(slot)
            self.wait_for_kernels()  # MPI knows nothing of streams
            start(sends[slot])
            wait(receives[slot])
            if left:
                start(receives[1 - slot])
            field.unpack(slot)
            wait(sends[1 - slot])  # the update overwrites what they send; no-ops if none was started
            field.update(slot)
            self._slot = 1 - slot
        wait(sends[1 - self._slot])
        self.wait_for_kernels()

    def values(self) -> Values:
        """Without ghost points."""
        points: Any = self._field.points[self._slot]
        host = points if self._kernels.stream is None else points.get(stream=self._kernels.stream)
        return host[1:-1, 1:-1].copy()

    def wait_for_kernels(self) -> None:
        if self._kernels.stream is not None:
            self._kernels.stream.synchronize()

    def free(self) -> None:
        """Releases the requests."""
        for request in (
            request for slots in (self._sends, self._receives) for slot in slots for request in slot
        ):
            request.Free()


def gather(comm: MPI.Comm, block: Block, problem: Problem) -> Values | None:
    """The whole grid, on rank 0."""
    parts = comm.gather(block.values())
    if parts is None:
        return None
    grid = np.empty(problem.points)
    indices: list[Pair] = list(np.ndindex(problem.blocks))
    for index, values in zip(indices, parts, strict=True):
        part = range_of(problem, index)
        grid[tuple(slice(f, f + n) for f, n in zip(part.first, part.size, strict=True))] = values
    return grid


def system_name() -> str:
    """As records name this MPI."""
    return "mpi4py-openmpi" if "Open MPI" in MPI.Get_library_version() else "mpi4py-mpich"


def solve(comm: MPI.Comm, options: Namespace) -> bool:
    """Whether the result is right, as far as that was asked for; on ranks other than 0 always."""
    ranks, is_first = comm.Get_size(), comm.Get_rank() == 0
    points = grid_size(options, ranks)
    problem = Problem(points, divide(points, ranks))
    here = provenance()
    if options.pin:
        pin(comm.Get_rank())
    block = Block(comm, make_kernels(comm, options), problem)
    if is_first:
        print(describe("mpi4py", options, problem, ranks, 1), flush=True)
    block.run(options.warmup)
    comm.Barrier()
    start = time.perf_counter()
    block.run(options.iterations)
    comm.Barrier()
    seconds = time.perf_counter() - start
    grid = gather(comm, block, problem) if options.verify or options.checksum else None
    block.free()
    if not is_first:
        return True
    found, digest = examine(grid, options)
    result = Result(problem, system_name(), "mpi", ranks, 1, seconds, found, digest)
    print(report(options, result), flush=True)
    if options.json is not None:
        write_json(options, result, here)
    return not found


def main() -> int:
    comm = MPI.COMM_WORLD
    try:
        usage = f"mpiexec -n RANKS python {PROGRAM} [options]"
        options = make_parser(PROGRAM, usage, ("host", "cuda"), BARRIERS).parse_args()
        return 0 if solve(comm, options) else 1
    except UserError as error:  # on all ranks
        if comm.Get_rank() == 0:
            print(f"{PROGRAM}: {error} (see {PROGRAM} --help)", file=sys.stderr, flush=True)
        return 2


if __name__ == "__main__":
    sys.exit(main())
