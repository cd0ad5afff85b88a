"""A ping-pong between two kernels, a GPU each: data and flags are written into the memory of the other.

One kernel on each GPU does all round trips. With --alone it is done without Weft, by one process that sees
both GPUs: what the card can do. With --flags no data goes along, a flag alone.
"""

import contextlib
import time

import cupy
import numpy as np
from measuring import argument_parser, pin, report

import weft
import weft.pgas

SOURCE = r"""
#include "weft/device/kernels.cuh"
using namespace weft::device;

extern "C" __global__ void ping_pong(char* theirs, Word* their_flag, const char* own, const Word* own_flag,
                                     size_t bytes, unsigned round, unsigned rounds, int is_first) {
  for (const unsigned end = round + rounds; round != end; ++round) {
    if (!is_first) wait_block(own_flag, round);
    if (bytes > 0) put_block(theirs, own, bytes);
    signal_block(their_flag, round);
    if (is_first) wait_block(own_flag, round);
  }
}
"""
MOST_THREADS = 512
BYTES_OF_THREAD = 16

parser = argument_parser(__doc__, memories=("cuda",))
parser.add_argument("--alone", action="store_true", help="one process with both GPUs, without Weft")
parser.add_argument("--flags", action="store_true", help="flags alone")
arguments = parser.parse_args()
if arguments.bench != "latency":
    parser.error("kernels have a ping-pong only: latency")


def compile_kernel():
    module = cupy.RawModule(code=SOURCE, options=("-std=c++17", "-I" + weft.include_dir()))
    return module.get_function("ping_pong")


def launch(kernel, stream, is_first, size_bytes, first_round, rounds, addresses):
    """`addresses` are those of the peer's memory and flag, and of the own ones."""
    threads = min(MOST_THREADS, max(1, -(-size_bytes // BYTES_OF_THREAD)))
    threads = threads if threads == 1 else -(-threads // 32) * 32
    kernel_arguments = (
        *map(np.uint64, addresses),
        np.uint64(0 if arguments.flags else size_bytes),
        np.uint32(first_round),
        np.uint32(rounds),
        np.int32(is_first),
    )
    with stream:
        kernel((1,), (threads,), kernel_arguments)


async def of_weft(world):
    pin(world.rank)
    kernel, stream = compile_kernel(), cupy.cuda.Stream(non_blocking=True)
    peer = 1 - world.rank
    for step in arguments.steps:
        landing = weft.pgas.make_segment(step.size_bytes, "uint8", "cuda")
        flag = weft.pgas.make_segment(1, "uint32", "cuda")
        own = cupy.ones(step.size_bytes, cupy.uint8)
        await weft.pgas.put(0, flag.pointer())
        pointers = [await world.allgather(each.pointer()) for each in (landing, flag)]
        reached = [await weft.pgas.peer_addresses(each, "cuda") for each in pointers]
        theirs, their_flag = (each.addresses[peer] for each in reached)
        addresses = (theirs, their_flag, own.data.ptr, reached[1].addresses[world.rank])

        async def run(first_round, rounds, addresses=addresses, size_bytes=step.size_bytes):
            launch(kernel, stream, world.rank == 0, size_bytes, first_round, rounds, addresses)
            await weft.stream_done(stream)

        await world.barrier()
        await run(1, step.warmup)
        await world.barrier()
        start = time.perf_counter()
        await run(1 + step.warmup, step.iterations)
        if world.rank == 0:
            report(arguments.bench, step, time.perf_counter() - start)
        await world.barrier()


def alone():
    kernels, streams = [], []
    for device in range(2):
        with cupy.cuda.Device(device):
            with contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError):  # it is enabled already
                cupy.cuda.runtime.deviceEnablePeerAccess(1 - device)
            kernels.append(compile_kernel())
            streams.append(cupy.cuda.Stream(non_blocking=True))
    for step in arguments.steps:
        memory = []
        for device in range(2):
            with cupy.cuda.Device(device) as here:
                # Three areas: what is sent, the landing, the flag.
                area = -(-step.size_bytes // 256) * 256
                memory.append((cupy.zeros(2 * area + 256, cupy.uint8), area))
                here.synchronize()

        def run(first_round, rounds, memory=memory, size_bytes=step.size_bytes):
            for device in range(2):
                (own, area), (theirs, _) = memory[device], memory[1 - device]
                own_at, their_at = own.data.ptr, theirs.data.ptr
                addresses = (their_at + area, their_at + 2 * area, own_at, own_at + 2 * area)
                with cupy.cuda.Device(device):
                    launch(
                        kernels[device],
                        streams[device],
                        device == 0,
                        size_bytes,
                        first_round,
                        rounds,
                        addresses,
                    )
            for stream in streams:
                stream.synchronize()

        run(1, step.warmup)
        start = time.perf_counter()
        run(1 + step.warmup, step.iterations)
        report(arguments.bench, step, time.perf_counter() - start)


if arguments.alone:
    alone()
else:
    weft.pgas.run(of_weft)
