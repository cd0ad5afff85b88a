"""A ping-pong between two kernels, a GPU each, that write into the memory of each other.

One kernel on each GPU does all round trips. --way says how: "signals", data and then a flag; "packets", data
that takes its flag along; "flags", a flag alone, without the header of Weft. With --alone it is done
without Weft, by one process that sees both GPUs: what the card can do.
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

enum Way { kSignals, kPackets, kFlags };

extern "C" __global__ void ping_pong(char* theirs, Word* their_flag, const char* own, char* landing,
                                     const Word* own_flag, const Packet* room, size_t bytes, unsigned round,
                                     unsigned rounds, int is_first, int way) {
  const auto send = [&] {
    if (way == kPackets) put_packets_block(reinterpret_cast<Packet*>(theirs), own, bytes, round);
    if (way == kSignals) put_signal_block(theirs, own, bytes, their_flag, round);
    if (way == kFlags && threadIdx.x == 0) *static_cast<volatile Word*>(their_flag) = round;
  };
  const auto receive = [&] {
    if (way == kPackets) take_packets_block(landing, room, bytes, round);
    if (way == kSignals) wait_block(own_flag, round);
    if (way == kFlags && threadIdx.x == 0)
      while (*static_cast<const volatile Word*>(own_flag) != round) {
      }
  };
  for (const unsigned end = round + rounds; round != end; ++round) {
    if (is_first) send();
    receive();
    if (!is_first) send();
  }
}
"""
#: Round trips before all others: a GPU raises its clocks within some tenths of a second of work.
ROUNDS_OF_CLOCKS = 200_000
#: Larger messages warm it up by themselves.
MOST_COLD_BYTES = 64 << 10

WAYS = ("signals", "packets", "flags")
MOST_THREADS = 512
#: Of a thread in a round, by way.
BYTES_OF_THREAD = {"signals": 16, "packets": 4, "flags": 1 << 30}

parser = argument_parser(__doc__, memories=("cuda",))
parser.add_argument("--alone", action="store_true", help="one process with both GPUs, without Weft")
parser.add_argument("--way", choices=WAYS, default=WAYS[0], help="how data and flags travel")
arguments = parser.parse_args()
if arguments.bench != "latency":
    parser.error("kernels have a ping-pong only: latency")


def compile_kernel():
    module = cupy.RawModule(code=SOURCE, options=("-std=c++17", "-I" + weft.include_dir()))
    return module.get_function("ping_pong")


def launch(kernel, stream, is_first, size_bytes, first_round, rounds, addresses):
    """`addresses` are those of the peer's room and flag, the own data, landing, flag and room."""
    threads = min(MOST_THREADS, max(1, -(-size_bytes // BYTES_OF_THREAD[arguments.way])))
    threads = threads if threads == 1 else -(-threads // 32) * 32
    kernel_arguments = (
        *map(np.uint64, addresses),
        np.uint64(size_bytes),
        np.uint32(first_round),
        np.uint32(rounds),
        np.int32(is_first),
        np.int32(WAYS.index(arguments.way)),
    )
    with stream:
        kernel((1,), (threads,), kernel_arguments)


def warmup_of(step):
    is_cold = step is arguments.steps[0] and step.size_bytes <= MOST_COLD_BYTES
    return step.warmup + (ROUNDS_OF_CLOCKS if is_cold else 0)


def room_bytes(size_bytes):
    """Packets have twice the size of their data."""
    return -(-2 * size_bytes // 8) * 8


async def of_weft(world):
    pin(world.rank)
    kernel, stream = compile_kernel(), cupy.cuda.Stream(non_blocking=True)
    peer = 1 - world.rank
    for step in arguments.steps:
        room = weft.pgas.make_segment(room_bytes(step.size_bytes), "uint8", "cuda")
        flag = weft.pgas.make_segment(1, "uint32", "cuda")
        own, landing = cupy.ones(step.size_bytes, cupy.uint8), cupy.zeros(step.size_bytes, cupy.uint8)
        await weft.pgas.put(np.zeros(room_bytes(step.size_bytes), np.uint8), room.pointer())
        await weft.pgas.put(0, flag.pointer())
        pointers = [await world.allgather(each.pointer()) for each in (room, flag)]
        reached = [await weft.pgas.peer_addresses(each, "cuda") for each in pointers]
        theirs, their_flag = (each.addresses[peer] for each in reached)
        mine, own_flag = (each.addresses[world.rank] for each in reached)
        addresses = (theirs, their_flag, own.data.ptr, landing.data.ptr, own_flag, mine)

        async def run(first_round, rounds, addresses=addresses, size_bytes=step.size_bytes):
            launch(kernel, stream, world.rank == 0, size_bytes, first_round, rounds, addresses)
            await weft.stream_done(stream)

        await world.barrier()
        warmup = warmup_of(step)
        await run(1, warmup)
        await world.barrier()
        start = time.perf_counter()
        await run(1 + warmup, step.iterations)
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
                # Areas: what is sent, the landing, the room (of two), the flag.
                area = -(-step.size_bytes // 256) * 256
                memory.append((cupy.zeros(4 * area + 256, cupy.uint8), area))
                here.synchronize()

        def run(first_round, rounds, memory=memory, size_bytes=step.size_bytes):
            for device in range(2):
                (own, area), (theirs, _) = memory[device], memory[1 - device]
                own_at, their_at = own.data.ptr, theirs.data.ptr
                theirs_two = (their_at + 2 * area, their_at + 4 * area)
                addresses = (*theirs_two, *(own_at + number * area for number in (0, 1, 4, 2)))
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

        warmup = warmup_of(step)
        run(1, warmup)
        start = time.perf_counter()
        run(1 + warmup, step.iterations)
        report(arguments.bench, step, time.perf_counter() - start)


if arguments.alone:
    alone()
else:
    weft.pgas.run(of_weft)
