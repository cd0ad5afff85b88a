"""Entry methods of two Python chares, a PE each, with an array that is sent in place and lands in another.

The arrays are NumPy's, or weft.DeviceArray on the PE's device. WEFT_MESSAGING_PATH=tagged or active takes
one of the two wire paths.
"""

import itertools
import time

from measuring import WINDOW, argument_parser, make_arrays, numbers_of_buffers, pin, report

import weft

arguments = argument_parser(__doc__, memories=("host", "emulated", "cuda")).parse_args()


class Peer(weft.Chare):
    def __init__(self):
        pin(weft.my_pe())
        self.partner = self.proxy[1 - self.index]
        self.arrived = 0

    async def prepare(self, step):
        """Both chares have their memory before the first message arrives."""
        num_out, num_in = numbers_of_buffers(step, self.index == 0)
        self.outgoing = itertools.cycle(await make_arrays(step.size_bytes, num_out, 1, arguments.memory))
        self.incoming = itertools.cycle(await make_arrays(step.size_bytes, num_in, 2, arguments.memory))

    def begin(self, step, done):
        """On element 0: the warm-up and then the timed part; `done` gets the seconds of the latter."""
        self.done = done
        self.left, self.timed_left = step.warmup, step.iterations
        self.started = 0.0
        self.advance()

    def advance(self):
        if self.left == 0:
            if self.timed_left == 0:
                self.done.set(time.perf_counter() - self.started)
                return
            self.left, self.timed_left = self.timed_left, 0
            self.started = time.perf_counter()
        self.left -= 1
        # An answer says that the array before it has arrived, so that array may change again.
        if arguments.bench == "latency":
            self.partner.ping(next(self.outgoing))
        else:
            for _ in range(WINDOW):
                self.partner.take(next(self.outgoing))

    @weft.post_entry("ping")
    def post_ping(self, data):
        data.into(next(self.incoming))

    def ping(self, data):
        self.partner.pong(next(self.outgoing))

    @weft.post_entry("pong")
    def post_pong(self, data):
        data.into(next(self.incoming))

    def pong(self, data):
        self.advance()

    @weft.post_entry("take")
    def post_take(self, data):
        data.into(next(self.incoming))

    def take(self, data):
        self.arrived += 1
        if self.arrived == WINDOW:
            self.arrived = 0
            self.partner.acknowledge()

    def acknowledge(self):
        self.advance()


async def main():
    peers = weft.Array(Peer, 2)
    for step in arguments.steps:
        await peers.prepare.call(step)
        done = weft.Future()
        peers[0].begin(step, done)
        report(arguments.bench, step, await done)
        await weft.quiescence()


weft.run(main)
