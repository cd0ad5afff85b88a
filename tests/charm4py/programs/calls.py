"""Calls, results, blocking methods, conditions, futures and exceptions."""

import contextvars
import pickle

import numpy as np
from charm4py import Array, Chare, Future, Group, charm, coro, readonlies, when

import weft.charm4py

variable = contextvars.ContextVar("variable", default="unset")


class Worker(Chare):
    def __init__(self, first=0):
        self.first = first
        self.expected = 0
        self.order = []

    def add(self, a, b=1):
        return self.first + a + b

    @coro
    def ask(self, other):
        return other.add(10, b=20, ret=True).get()

    @when("self.expected == number")
    def take(self, number, text):
        self.order.append(text)
        self.expected += 1

    @coro
    def wait_for(self, count):
        self.wait(f"self.expected >= {count}")
        return self.order

    def fail(self):
        raise KeyError(self.thisIndex)

    @coro
    def fail_later(self, value):
        before = variable.get()
        variable.set(value)
        charm.sleep(0)
        if value == 0:
            raise ValueError(before)
        return before

    def fail_if_odd(self):
        if self.thisIndex[0] % 2 == 1:
            raise ValueError(self.thisIndex)
        return "even"

    def constant(self):
        return readonlies.constant

    @staticmethod
    def doubled(value):
        return 2 * value

    @classmethod
    def name(cls):
        return cls.__name__

    def call_back(self, callback):
        callback(self.thisIndex)


class Single(Chare):
    def __init__(self, done):
        self.done = done

    def where(self):
        self.done.send((charm.myPe(), self.thisIndex))


def check_proxies():
    """A collection's proxy knows those of its chares; they are the same by any form of the index."""
    array = Array(Worker, 3)
    assert array[1] is array[1] and array[(1,)] == array[1] == array[np.int64(1)]
    assert array[0] != array[1] and len({array[0], array[1], array[(0,)]}) == 2
    assert array[1][0] == array[0]
    assert array[0:2].issec and array[0:2] != array[0]
    plane = Array(Single, (2, 2), args=[Future(4)])
    assert plane[1, 0] is plane[(1, 0)] and plane[0:1, 0:2].issec
    assert pickle.loads(pickle.dumps(array[1])) == array[1]
    for wrong in (7, -1, 1.0, "1", (0, 0)):
        for _ in range(2):
            try:
                found = array[wrong]
            except (IndexError, TypeError, weft.Error):
                continue
            raise AssertionError(found)


def check_iwait():
    """Those that are ready come at once; one that is set while the loop waits, or runs, wakes it once."""
    futures = [Future() for _ in range(6)]
    futures[3].send("ready")
    futures[0].send(ValueError("set"))
    order = []
    for future in charm.iwait([*futures, futures[3]]):
        number = futures.index(future)
        order.append(number)
        if order == [0, 3, 3]:
            charm.scheduleCallableAfter(futures[4].send, 0.001)
            charm.scheduleCallableAfter(futures[1].send, 0.001)
        elif number == 1:
            futures[2].send()
        elif number == 2:
            charm.scheduleCallableAfter(futures[5].send, 0.001)
    assert order[:3] == [0, 3, 3] and sorted(order[3:]) == [1, 2, 4, 5], order
    assert list(charm.iwait([])) == []


class Looked:
    """What iwait takes, which counts how often it is looked at."""

    looks = 0

    def __init__(self):
        self.future = Future()

    def _when_ready(self):
        return self

    def done(self):
        Looked.looks += 1
        return self.future.ready()

    def then(self, function):
        Looked.looks += 1
        return self.future._when_ready().then(function)


def check_order_of_iwait():
    """They come in the order in which they are set, and each is looked at a few times, not once for each."""
    futures = [Future() for _ in range(4)]
    order = [2, 1, 3, 0]

    def set_all():
        for number in order:
            futures[number].send()

    charm.scheduleCallableAfter(set_all, 0.001)
    assert [futures.index(future) for future in charm.iwait(futures)] == order

    looked = [Looked() for _ in range(100)]
    left = list(looked)
    charm.scheduleCallableAfter(lambda: left.pop().future.send(), 0)
    for arrived in charm.iwait(looked):
        assert arrived is looked[len(left)]
        if left:
            charm.scheduleCallableAfter(lambda: left.pop().future.send(), 0)
    assert not left and Looked.looks <= 4 * len(looked), Looked.looks


def main(args):
    assert weft.charm4py.charm is charm
    assert args[1:] == ["word"], args
    readonlies.constant = 7
    group = Group(Worker)
    array = Array(Worker, 5, args=[100])
    charm.awaitCreation(group, array)
    assert group[1].add(1, ret=True).get() == 2
    assert array[1].add(1, b=2, ret=True).get() == 103
    assert array.add(0, ret=True).get() == [101] * 5
    assert array.add(0, awaitable=True).get() is None
    assert array[4].ask(array[0], ret=True).get() == 130
    assert group.constant(ret=True).get() == [7] * charm.numPes()

    assert not hasattr(array, "doubled") and not hasattr(array, "name")
    assert (Worker.doubled(2), Worker.name()) == (4, "Worker")

    waiting = array[2].wait_for(3, ret=True)
    for number, text in ((2, "c"), (1, "b"), (0, "a")):
        array[2].take(number, text)
    assert waiting.get() == ["a", "b", "c"]

    try:
        array[3].fail(ret=True).get()
    except KeyError as error:
        assert error.args == ((3,),)
    else:
        raise AssertionError("no exception")
    # The thread of a method that has raised is used again, with another context.
    for _ in range(3):
        try:
            array[0].fail_later(0, ret=True).get()
        except ValueError as error:
            assert error.args == ("unset",)
        else:
            raise AssertionError("no exception")
        assert array[0].fail_later(1, ret=True).get() == "unset"
    values = array.fail_if_odd(ret=True).get()
    assert [type(value) for value in values] == [str, ValueError, str, ValueError, str]

    several = Future(5)
    array.call_back(several)
    assert sorted(several.get()) == [(i,) for i in range(5)]

    first, second = Future(), Future()
    Chare(Single, args=[first], onPE=1)
    Chare(Single, args=[second], onPE=0).where()
    second.get()
    assert list(charm.iwait([second])) == [second]
    check_iwait()
    check_order_of_iwait()
    check_proxies()
    assert not first.ready()
    print("calls passed")
    exit()


charm.start(main)
