"""Two PEs exchange large arrays through a channel, and print how many messages both of them copied.

shared_copy_probe.py exchange     windows in both directions; each array is compared
shared_copy_probe.py payloads     the same arrays as arguments that are sent in place
shared_copy_probe.py values       the same arrays as values, which change after each call
shared_copy_probe.py computing    the receiver posts a receive and computes until the bytes are there
shared_copy_probe.py dying        PE 0 passes arrays as values until PE 1 dies, see die_reading.cpp
... forbidden                     after the system has been asked to refuse copies between processes
... forbidden-later[-0|-1]        after it has been asked to when the job had started, on all PEs or on one
"""

import ctypes
import os
import platform
import signal
import struct
import sys
import time

import numpy as np

import weft

SIZES = (4097, 32 * 1024, 40_001, 65_536, 600_000, 1 << 20, 5_000_001)
WINDOW = 5
#: It is shared in all ways.
FIRST_SIZE = 1 << 20
MOST_FIRST_ROUNDS = 100
COMPUTE_LIMIT_S = 30.0
#: Four parts of 256 KiB, which the PEs take in turn, and one of 213,571 bytes. A receiver that sleeps is
#: woken to help with messages from 1 MiB on.
DYING_BYTES = 1_262_147
DYING_CALLS = 10_000
#: The numbers of process_vm_readv and process_vm_writev.
CALLS = {"x86_64": (310, 311), "aarch64": (270, 271)}
#: Then nothing is shared from some time on.
MAY_REFUSE = any(word.startswith("forbidden") for word in sys.argv)


def forbid_process_copies():
    """Installs a seccomp filter: both system calls fail with EPERM, everything else is allowed."""
    load, equal, give = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050001
    first, second = CALLS[platform.machine()]
    program = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (load, 0, 0, 0),
            (equal, 2, 0, first),
            (equal, 1, 0, second),
            (give, 0, 0, allow),
            (give, 0, 0, refuse),
        )
    )
    buffer = ctypes.create_string_buffer(program, len(program))
    prepared = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    set_no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    if libc.prctl(set_no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, mode_filter, prepared):
        sys.exit(f"the system refuses a seccomp filter: error {ctypes.get_errno()}")


def contents(size_bytes, seed):
    return np.random.default_rng(seed).integers(0, 256, size_bytes, np.uint8)


def num_shared():
    return sum(use.messages for use in weft.transport_use() if use.path == "shared")


class Peer(weft.Chare):
    def __init__(self):
        if "forbidden-later" in sys.argv or f"forbidden-later-{self.index}" in sys.argv:
            forbid_process_copies()
        self.channel = weft.Channel(self, self.proxy[1 - self.index])

    async def exchange_size(self, size):
        sent = [contents(size, 10 * i + self.index) for i in range(WINDOW)]
        into = [np.empty(size, np.uint8) for _ in range(WINDOW)]
        receives = [self.channel.recv(into=array) for array in into]
        # Both ends have posted their receives before either sends.
        await self.allreduce(0, weft.Reducer.sum)
        for operation in [self.channel.send(array) for array in sent]:
            await operation
        for i, (receive, array) in enumerate(zip(receives, into, strict=True)):
            await receive
            assert np.array_equal(array, contents(size, 10 * i + 1 - self.index)), (size, i)

    async def take(self, array, seed):
        assert np.array_equal(array, contents(array.size, seed)), (array.size, seed)

    async def pass_payloads(self, size):
        for seed in range(WINDOW):
            await self.proxy[1 - self.index].take.call(weft.nocopy(contents(size, seed)), seed)

    async def pass_values(self, size):
        for seed in range(WINDOW):
            array = contents(size, seed)
            taken = self.proxy[1 - self.index].take.call(array, seed)
            array[:] = 0
            await taken

    async def count_shared(self, way):
        """How many messages of all sizes this PE copied together with the other one.

        The first messages of a size find no mailbox; when it is known depends on the load of the machine.
        """
        pass_size = {
            "exchange": self.exchange_size,
            "payloads": self.pass_payloads,
            "values": self.pass_values,
        }[way]
        for _ in range(0 if MAY_REFUSE else MOST_FIRST_ROUNDS):
            await pass_size(FIRST_SIZE)
            if await self.allreduce(num_shared(), weft.Reducer.min) > 0:
                break
        before = num_shared()
        for size in SIZES:
            await pass_size(size)
        return num_shared() - before

    async def warm_up(self):
        """Until PE 0 knows the mailbox of its direction, which the first large receive makes."""
        array = np.zeros(FIRST_SIZE, np.uint8)
        for _ in range(MOST_FIRST_ROUNDS):
            if self.index == 0:
                await self.channel.send(array)
            else:
                await self.channel.recv(into=array)
            if await self.allreduce(num_shared(), weft.Reducer.max) > 0:
                break

    async def receive_while_computing(self, size_bytes):
        into = np.zeros(size_bytes, np.uint8)
        receive = self.channel.recv(into=into)
        self.proxy[0].send(size_bytes)
        limit = time.monotonic() + COMPUTE_LIMIT_S  # nothing from here on runs the scheduler
        while not into.all() and time.monotonic() < limit:
            pass
        came_while_computing = bool(into.all())
        await receive
        return came_while_computing

    def swallow(self, array):
        pass

    async def send(self, size_bytes):
        await self.channel.send(np.full(size_bytes, 7, np.uint8))


async def call_a_pe_that_dies(peer):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher's, on PE 1's death
    array = np.zeros(DYING_BYTES, np.uint8)
    for number in range(DYING_CALLS):
        os.write(1, f"call {number}\n".encode())
        swallowed = peer.swallow.call(array)
        os.write(1, f"left {number}\n".encode())
        await swallowed


async def main():
    peers = weft.Group(Peer)
    if "dying" in sys.argv:
        await call_a_pe_that_dies(peers[1])
    elif "computing" not in sys.argv:
        print("shared", *await peers.count_shared.call(sys.argv[1]))
    else:
        await peers.warm_up.call()
        print("came while computing:", await peers[1].receive_while_computing.call(16 << 20))


if "forbidden" in sys.argv:
    forbid_process_copies()
weft.run(main)
