"""A queued channel between two Python chares, a PE each: a stream of each sends and receives.

The clock includes the queueing of 20 rounds of a ping-pong, or of two windows. With --graph they are captured
in a graph once, untimed, and the timed part launches it again and again.
"""

import time
from functools import partial

import numpy as np
from device_streams import MOST_LAUNCHES, Stream
from measuring import WINDOW, argument_parser, pin, report

import weft

ROUNDS_OF_LAUNCH = 20

parser = argument_parser(__doc__, memories=("emulated", "cuda"))
parser.add_argument("--graph", action="store_true", help="launch what was captured")
arguments = parser.parse_args()


class Peer(weft.Chare):
    async def play(self):
        pin(weft.my_pe())
        self.stream = Stream(arguments.memory)
        for step in arguments.steps:
            await self.measure(step)

    async def measure(self, step):
        first = self.index == 0
        # The second chare's messages are answers: in windows they have a byte.
        sent_bytes = step.size_bytes if first or arguments.bench == "latency" else 1
        received_bytes = step.size_bytes if not first or arguments.bench == "latency" else 1
        landings = [weft.DeviceArray(received_bytes, np.uint8, arguments.memory) for _ in range(2)]
        message = weft.DeviceArray(sent_bytes, np.uint8, arguments.memory)
        await message.copy_from(np.ones(sent_bytes, np.uint8))
        channel = weft.QueuedChannel(self, self.proxy[1 - self.index], landings)
        await channel.connect()
        stream = self.stream.own

        def ping_pong(count):
            # A launch sends and receives; the second chare begins with a receive, and ends with a send.
            if not first:
                channel.recv(stream)
            for _ in range(count if first else count - 1):
                channel.exchange(message, stream)
            if not first:
                channel.send(message, stream)

        def windows(count):
            sends, receives = (WINDOW, 1) if first else (1, WINDOW)
            for _ in range(count):
                if first:
                    for _ in range(sends):
                        channel.send(message, stream)
                for _ in range(receives):
                    channel.recv(stream)
                if not first:
                    channel.send(message, stream)

        is_latency = arguments.bench == "latency"
        queue = ping_pong if is_latency else windows
        rounds_of_launch = ROUNDS_OF_LAUNCH if is_latency else 2
        launch = partial(queue, rounds_of_launch)
        if arguments.graph:
            launch()  # once without a capture
            await channel.over()
            launch = self.stream.capture(launch)
        at_once = max(1, MOST_LAUNCHES // rounds_of_launch // (1 if is_latency else 16))

        async def run(rounds):
            launches = -(-rounds // rounds_of_launch)
            while launches > 0:
                for _ in range(min(launches, at_once)):
                    launch()
                launches -= at_once
                await (weft.stream_done(stream) if arguments.graph else channel.over())
            return -(-rounds // rounds_of_launch) * rounds_of_launch

        await run(step.warmup)
        start = time.perf_counter()
        step.iterations = await run(step.iterations)
        if first:
            report(arguments.bench, step, time.perf_counter() - start)
        await channel.close()


async def main():
    peers = weft.Array(Peer, 2)
    await peers.play.call()


weft.run(main)
