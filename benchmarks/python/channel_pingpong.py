"""A channel between two Python chares, a PE each: arrays are sent in place and received into an array.

The arrays are NumPy's, or weft.DeviceArray on the PE's device, or GPU memory of another allocator.
"""

import functools
import itertools
import time

import numpy as np
from measuring import (
    ALLOCATORS,
    WINDOW,
    argument_parser,
    make_arrays,
    numbers_of_buffers,
    pin,
    report,
)

import weft

parser = argument_parser(__doc__, memories=("host", "emulated", "cuda"))
parser.add_argument("--allocator", choices=ALLOCATORS, default=ALLOCATORS[0], help="of cuda memory")
parser.add_argument("--receiver-allocator", choices=ALLOCATORS, help="of the arrays that are received into")
arguments = parser.parse_args()
into_allocator = arguments.receiver_allocator or arguments.allocator


async def ping_pong(first, channel, outgoing, incoming, round_trips):
    # An answer says that the message before it has arrived, so its buffer is free again. The last message is
    # awaited, because the code that makes the next buffers does not do it.
    sending = None
    sent, received = next(outgoing), next(incoming)
    for _ in range(round_trips):
        if first:
            sending = channel.send(sent)
        await channel.recv(into=received)
        if not first:
            sending = channel.send(sent)
    if sending is not None:
        await sending


async def windows(first, channel, outgoing, incoming, count):
    acknowledgement = np.ones(0, np.uint8)
    for _ in range(count):
        if first:
            for operation in [channel.send(next(outgoing)) for _ in range(WINDOW)]:
                await operation
            await channel.recv(into=acknowledgement)
        else:
            for operation in [channel.recv(into=next(incoming)) for _ in range(WINDOW)]:
                await operation
            channel.send(acknowledgement)


class Peer(weft.Chare):
    async def play(self):
        first = self.index == 0
        pin(weft.my_pe())
        channel = weft.Channel(self, self.proxy[1 - self.index])
        exchange = ping_pong if arguments.bench == "latency" else windows
        for step in arguments.steps:
            num_out, num_in = numbers_of_buffers(step, first)
            make = functools.partial(make_arrays, step.size_bytes, memory=arguments.memory)
            outgoing = itertools.cycle(await make(num_out, 1, allocator=arguments.allocator))
            incoming = itertools.cycle(await make(num_in, 2, allocator=into_allocator))
            await exchange(first, channel, outgoing, incoming, step.warmup)
            start = time.perf_counter()
            await exchange(first, channel, outgoing, incoming, step.iterations)
            if first:
                report(arguments.bench, step, time.perf_counter() - start)


async def main():
    peers = weft.Array(Peer, 2)
    await peers.play.call()


weft.run(main)
