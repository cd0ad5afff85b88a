"""charm4py between two PEs: `--model channel` (between two coroutines) or `--model entry` (entry methods).

charm4py makes a new array for every message that arrives; there is no receive into a buffer.
"""

import time

import numpy as np
from charm4py import Channel, Chare, Future, Group, charm, coro
from measuring import WINDOW, argument_parser, pin, report


class ChannelPeer(Chare):
    @coro
    def run(self, bench, steps, done):
        pe = charm.myPe()
        pin(pe)
        channel = Channel(self, remote=self.thisProxy[1 - pe])
        exchange = self.ping_pong if bench == "latency" else self.windows
        for step in steps:
            sent = np.full(step.size_bytes, 1, np.uint8)
            exchange(channel, sent, step.warmup)
            start = time.perf_counter()
            exchange(channel, sent, step.iterations)
            if pe == 0:
                report(bench, step, time.perf_counter() - start)
        if pe == 0:
            done.send(None)

    def ping_pong(self, channel, sent, round_trips):
        if charm.myPe() == 0:
            for _ in range(round_trips):
                channel.send(sent)
                channel.recv()
        else:
            for _ in range(round_trips):
                channel.recv()
                channel.send(sent)

    def windows(self, channel, sent, count):
        for _ in range(count):
            if charm.myPe() == 0:
                for _ in range(WINDOW):
                    channel.send(sent)
                channel.recv()
            else:
                for _ in range(WINDOW):
                    channel.recv()
                channel.send(None)


class EntryPeer(Chare):
    def __init__(self):
        pin(charm.myPe())

    def start(self, step, bench, done):
        """On PE 0: the warm-up and then the timed part; `done` gets the seconds of the latter."""
        self.sent = np.full(step.size_bytes, 1, np.uint8)
        self.bench, self.done = bench, done
        self.left, self.timed_left = step.warmup, step.iterations
        self.started = 0.0
        self.arrived = 0
        self.next()

    def next(self):
        if self.left == 0:
            if self.timed_left == 0:
                self.done.send(time.perf_counter() - self.started)
                return
            self.left, self.timed_left = self.timed_left, 0
            self.started = time.perf_counter()
        self.left -= 1
        if self.bench == "latency":
            self.thisProxy[1].ping(self.sent)
        else:
            for _ in range(WINDOW):
                self.thisProxy[1].take(self.sent)

    def ping(self, data):
        self.thisProxy[0].pong(data)

    def pong(self, data):
        self.next()

    def take(self, data):
        self.arrived = getattr(self, "arrived", 0) + 1
        if self.arrived == WINDOW:
            self.arrived = 0
            self.thisProxy[0].acknowledge()

    def acknowledge(self):
        self.next()


def main(args):
    parser = argument_parser(__doc__)
    parser.add_argument("--model", choices=["channel", "entry"], required=True)
    arguments = parser.parse_args(args[1:])
    if arguments.model == "channel":
        done = Future()
        Group(ChannelPeer).run(arguments.bench, arguments.steps, done)
        done.get()
    else:
        peers = Group(EntryPeer)
        for step in arguments.steps:
            done = Future()
            peers[0].start(step, arguments.bench, done)
            report(arguments.bench, step, done.get())
    exit()


charm.start(main)
