"""Kernels on the GPUs of two PEs send by weft/device/kernels.cuh, and coroutines await the flags.

In the end kernels answer one another without a CPU.
"""

import importlib
from typing import Any

import numpy as np

import weft
import weft.pgas as pgas

ROUNDS = 50  # an even number
COUNT = 10_000  # numbers of a message
SOURCE = r"""
#include "weft/device/kernels.cuh"
using namespace weft::device;
typedef unsigned long long Address;

// The caller's part is a thread, a warp or a block.
extern "C" __global__ void send(const Address* inboxes, const Address* flags, const int* data, size_t bytes,
                                int pe, Word round, int scope) {
  int* const inbox = peer<int>(inboxes, pe);
  Word* const flag = peer<Word>(flags, pe);
  if (scope == 0 && threadIdx.x == 0) put_signal(inbox, data, bytes, flag, round);
  if (scope == 1 && threadIdx.x < 32) put_signal_warp(inbox, data, bytes, flag, round);
  if (scope == 2) put_signal_block(inbox, data, bytes, flag, round);
}

// All rounds of both PEs, each of which answers the other.
extern "C" __global__ void ping_pong(const Address* inboxes, const Address* flags, int* own, Word* own_flag,
                                     int rank, Word first, int rounds, int* wrong) {
  const int other = 1 - rank;
  for (int round = 0; round < rounds; ++round) {
    if (round % 2 == rank) {
      if (threadIdx.x == 0) own[1] = 7 * round;
      __syncthreads();
      put_signal_block(peer<int>(inboxes, other), own + 1, sizeof(int), peer<Word>(flags, other),
                       first + round);
    } else {
      wait_block(own_flag, first + round);
      if (threadIdx.x == 0 && own[0] != 7 * round) atomicAdd(wrong, 1);
      __syncthreads();
    }
  }
}

// All rounds of both PEs, each of which sends and takes packets, in two rooms in turn.
extern "C" __global__ void packets(Packet* theirs, const Packet* own, int* data, int count, int rank,
                                   Word first, int rounds, int* wrong) {
  for (int i = 0; i < rounds; ++i) {
    const Word round = first + i == 0 ? 1u : first + i;  // a counter that passes 2^32 leaves 0 out
    const size_t room = i % 2 * count;
    for (int at = threadIdx.x; at < count; at += blockDim.x) data[at] = 1000 * i + at + rank;
    __syncthreads();
    put_packets_block(theirs + room, data, count * sizeof(int), round);
    take_packets_block(data, own + room, count * sizeof(int), round);
    for (int at = threadIdx.x; at < count; at += blockDim.x)
      if (data[at] != 1000 * i + at + 1 - rank) atomicAdd(wrong, 1);
    __syncthreads();
  }
}
"""


async def by_scope(world: pgas.Team, cupy: Any, kernel: Any) -> None:
    inbox = pgas.make_segment(COUNT, "int32", "cuda")
    flag = pgas.make_segment(1, "uint32", "cuda")
    await pgas.put(0, flag.pointer())
    inboxes = await pgas.peer_addresses(await world.allgather(inbox.pointer()))
    flags = await pgas.peer_addresses(await world.allgather(flag.pointer()))
    await world.barrier()
    other = 1 - world.rank
    round_number = 0
    # An address that is aligned to 16 bytes, and others; some bytes remain.
    for scope in (0, 1, 2):
        for skipped, size_bytes in ((0, 4 * COUNT), (1, 4 * COUNT - 4), (0, 4 * COUNT - 3), (0, 0)):
            round_number += 1
            data = cupy.arange(COUNT, dtype=cupy.int32) + 1000 * round_number + world.rank
            wait = pgas.wait_for(flag.pointer(), round_number)
            kernel(
                (1,),
                (128,),
                (
                    cupy.asarray(inboxes),
                    cupy.asarray(flags),
                    data[skipped:],
                    np.uint64(size_bytes),
                    np.int32(other),
                    np.uint32(round_number),
                    np.int32(scope),
                ),
            )
            await wait
            got = (await pgas.get(inbox.pointer(), COUNT)).view("u1")[:size_bytes]
            sent = (np.arange(COUNT, dtype="i4") + 1000 * round_number + other)[skipped:].view("u1")
            assert (got == sent[:size_bytes]).all(), (scope, skipped, size_bytes)
            await weft.stream_done(1, "cuda")
            await world.barrier()


async def without_a_cpu(world: pgas.Team, cupy: Any, kernel: Any) -> None:
    numbers = pgas.make_segment(2, "int32", "cuda")
    flag = pgas.make_segment(1, "uint32", "cuda")
    first = 2**32 - ROUNDS // 2  # the counters pass 2**32
    await pgas.put(first - 1, flag.pointer())
    inboxes = await pgas.peer_addresses(await world.allgather(numbers.pointer()))
    flags = await pgas.peer_addresses(await world.allgather(flag.pointer()))
    wrong = cupy.zeros(1, dtype=cupy.int32)
    # Begun before the kernel, which waits: the driver allocates for the first wait of a PE.
    last = first + ROUNDS - 1 - world.rank  # rank 1 sends last
    end = pgas.wait_for(flag.pointer(), last % 2**32)
    await world.barrier()
    kernel(
        (1,),
        (64,),
        (
            cupy.asarray(inboxes),
            cupy.asarray(flags),
            cupy.asarray(numbers.local),
            cupy.asarray(flag.local),
            np.int32(world.rank),
            np.uint32(first),
            np.int32(ROUNDS),
            wrong,
        ),
    )
    await end
    await weft.stream_done(1, "cuda")
    assert int(wrong[0]) == 0
    await world.barrier()


async def by_packets(world: pgas.Team, cupy: Any, kernel: Any) -> None:
    count = 1000
    room = pgas.make_segment(2 * count, "uint64", "cuda")
    await pgas.put(np.zeros(2 * count, np.uint64), room.pointer())
    rooms = await pgas.peer_addresses(await world.allgather(room.pointer()))
    wrong = cupy.zeros(1, dtype=cupy.int32)
    data = cupy.zeros(count, dtype=cupy.int32)
    await world.barrier()
    kernel(
        (1,),
        (128,),
        (
            np.uint64(rooms.addresses[1 - world.rank]),
            np.uint64(rooms.addresses[world.rank]),
            data,
            np.int32(count),
            np.int32(world.rank),
            np.uint32(2**32 - ROUNDS // 2 + 1),
            np.int32(ROUNDS),
            wrong,
        ),
    )
    await weft.stream_done(1, "cuda")
    assert int(wrong[0]) == 0
    await world.barrier()


async def main(world: pgas.Team) -> None:
    cupy = importlib.import_module("cupy")  # in the job, which makes the PE's own device current for it
    options = ("-std=c++17", "-I" + weft.include_dir())
    module = cupy.RawModule(code=SOURCE, options=options)
    await by_scope(world, cupy, module.get_function("send"))
    await without_a_cpu(world, cupy, module.get_function("ping_pong"))
    await by_packets(world, cupy, module.get_function("packets"))
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
