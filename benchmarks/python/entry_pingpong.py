"""Entry methods of two Python chares, each on a PE of its own, that call each other with an array."""

import itertools
import time

import numpy as np
from measuring import WINDOW, argument_parser, pin, report

import weft

arguments = argument_parser(__doc__).parse_args()


class Peer(weft.Chare):
    def __init__(self):
        pin(weft.my_pe())
        self.partner = self.proxy[1 - self.index]
        self.arrived = 0

    def begin(self, step, done):
        """On element 0: the warm-up and then the timed part; `done` gets the seconds of the latter."""
        arrays = [np.full(step.size_bytes, 1, np.uint8) for _ in range(step.buffers)]
        self.outgoing = itertools.cycle(arrays)
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
        if arguments.bench == "latency":
            self.partner.ping(next(self.outgoing))
        else:
            for _ in range(WINDOW):
                self.partner.take(next(self.outgoing))

    def ping(self, data):
        self.partner.pong(data)

    def pong(self, data):
        self.advance()

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
        done = weft.Future()
        peers[0].begin(step, done)
        report(arguments.bench, step, await done)


weft.run(main)
