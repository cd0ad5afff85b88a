"""Large and small calls from one PE to a chare; prints whether they ran in the order of sending.

One of the calls cannot be sent, which must not stop those after it.
"""

import threading

import numpy as np
from charm4py import Chare, charm, coro

NUM_CALLS = 30


class Receiver(Chare):
    def __init__(self):
        self.met = []

    def take(self, number, data):
        self.met.append(number)

    @coro
    def block(self, number, data):
        self.met.append(number)
        charm.sleep(0.001)

    def all(self):
        return self.met


def main(args):
    receiver = Chare(Receiver, onPE=1)
    charm.awaitCreation(receiver)
    for number in range(NUM_CALLS):
        data = np.zeros(1 << 18) if number % 3 == 0 else None
        (receiver.block if number % 7 == 3 else receiver.take)(number, data)
        if number == 5:
            try:
                receiver.take(number, threading.Lock())
            except Exception as error:
                assert "lock" in str(error), error
            else:
                raise AssertionError("a lock was sent")
    charm.waitQD()
    print(receiver.all(ret=True).get() == list(range(NUM_CALLS)))
    exit()


charm.options.ordered = True
charm.start(main)
