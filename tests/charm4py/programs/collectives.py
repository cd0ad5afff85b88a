"""Reductions, sections, channels, pool, maps, sparse arrays, moves and quiescence."""

import numpy as np
from charm4py import Array, ArrayMap, Channel, Chare, Future, Group, Reducer, charm, coro

import weft


def largest_sum(contributions):
    return max(contributions, key=sum)


def total(contributions):
    return sum(contributions)


Reducer.addReducer(largest_sum)
Reducer.addReducer(total, pre=lambda value: value + 1, post=lambda value: -value)


class Worker(Chare):
    def give(self, done, section=None):
        self.reduce(done, self.thisIndex[0], Reducer.sum, section)

    def give_array(self, done):
        self.contribute(np.full(3, self.thisIndex[0]), Reducer.max, done)

    def give_own(self, done):
        self.contribute([self.thisIndex[0], 1], Reducer.largest_sum, done)

    def give_nothing(self, done):
        self.reduce(done)

    @coro
    def all(self, section):
        whole = self.allreduce(1, Reducer.sum).get()
        part = self.allreduce(1, Reducer.sum, section).get() if self.thisIndex[0] % 2 == 0 else 0
        return whole, part

    @coro
    def all_total(self, section=None):
        return self.allreduce(self.thisIndex[0], Reducer.total, section).get()

    def local_index(self):
        return self.thisProxy.ckLocalBranch().thisIndex

    @coro
    def all_pes(self):
        return self.allreduce(self.thisIndex, Reducer.total).get()

    @coro
    def talk(self, count):
        right = Channel(self, self.thisProxy[(self.thisIndex[0] + 1) % count])
        left = Channel(self, self.thisProxy[(self.thisIndex[0] - 1) % count])
        right.send(self.thisIndex[0], "right")
        left.send(self.thisIndex[0])
        met = {}
        for channel in charm.iwait([right, left]):
            met[channel] = channel.recv()
        return met[left], met[right]

    @coro
    def talk_of_devices(self):
        array = weft.DeviceArray(4, "float64", "emulated")
        channel = Channel(self, self.thisProxy[1 - self.thisIndex[0]])
        if self.thisIndex[0] == 0:
            channel.send(array, array.nbytes)
            channel.send("sent")
            return None
        channel.recv(array, array.nbytes)
        return channel.recv()

    def index(self):
        return self.thisIndex

    def where(self):
        return charm.myPe()


def parity(chare):
    return chare.thisIndex[0] % 2


def numpy_parity(chare):
    return np.int64(chare.thisIndex[0] % 2)


class Backwards(ArrayMap):
    def procNum(self, index):
        return charm.numPes() - 1 - index[0] % charm.numPes()


@coro
def fibonacci(n):
    return n if n < 2 else sum(charm.pool.map(fibonacci, [n - 1, n - 2]))


def square(x):
    return x * x


def first(values):
    return values[0]


def makes_a_lambda(x):
    return lambda: x


@coro
def makes_a_lambda_in_a_coroutine(x):
    return lambda: Future().ready() or x


waiting = most_waiting = 0


@coro
def tree(depth):
    """Counts how many tasks of this PE wait at a time."""
    global waiting, most_waiting
    if depth == 0:
        return most_waiting
    waiting += 1
    most_waiting = max(waiting, most_waiting)
    most = max(charm.pool.map(tree, [depth - 1, depth - 1]))
    waiting -= 1
    return most


def check_tree_of_tasks():
    """What tasks start comes before what others ask for, so a tree of 2^9 tasks is worked off in depth."""
    if charm.numPes() <= 2:  # one PE has tasks
        assert charm.pool.map(tree, [8])[0] <= 16


def redefined(x):
    return x


def check_redefined_function():
    """The pool calls what the name means now."""
    assert charm.pool.map(redefined, [3]) == [3]
    charm.thisProxy.exec("def redefined(x): return -x", "__main__", awaitable=True).get()
    assert charm.pool.map(redefined, [3]) == [-3]


def check_reductions(array):
    for method, expected in ((array.give, 15), (array.give_nothing, None)):
        done = Future()
        method(done)
        assert done.get() == expected
    done = Future()
    array.give_array(done)
    assert done.get().tolist() == [5, 5, 5]
    done = Future()
    array.give_own(done)
    assert done.get() == [5, 1]


def check_sections(array):
    even, odd = charm.split(array, 2, parity)
    assert charm.split(array, 2, numpy_parity) == [even, odd]
    for section, total in ((even, 6), (odd, 9), (array[1:3], 3), (charm.split(array, 1, elems=[5, 0])[0], 5)):
        done = Future()
        section.give(done, section)
        assert done.get() == total
    assert odd.index(ret=True).get() == [(1,), (3,), (5,)]
    assert array.all(even, ret=True).get() == [(6, 3), (6, 0)] * 3
    assert array.all_total(ret=True).get() == [-21] * 6
    assert even.all_total(even, ret=True).get() == [-9] * 3
    assert Array(Worker, (2, 2)).all_total(ret=True).get() == [-6] * 4
    group = Group(Worker, onPEs=[1])
    assert group.all_pes(ret=True).get() == [-2]
    assert group.local_index(ret=True).get() == [1]
    assert len(charm.combine(array, even, Array(Worker, 2)).index(ret=True).get()) == 8


def check_placement():
    mapped = Array(Worker, 4, map=Group(Backwards))
    assert mapped.where(ret=True).get() == [1, 0, 1, 0]
    sparse = Array(Worker, ndims=2)
    for index in ((3, 1), (0, 2)):
        sparse.ckInsert(index, onPE=1)
    sparse.ckDoneInserting()
    assert sparse.index(ret=True).get() == [(0, 2), (3, 1)]
    mapped[0].migrate(0)
    charm.waitQD()
    assert mapped[0].where(ret=True).get() == 0


def main(args):
    array = Array(Worker, 6)
    check_reductions(array)
    check_sections(array)
    assert array.talk(6, ret=True).get()[0] == ((5, "right"), 1)
    assert charm.pool.map(square, range(5), chunksize=2) == [0, 1, 4, 9, 16]
    assert fibonacci(7) == 13
    assert charm.pool.map(square, (x for x in range(3))) == [0, 1, 4]
    items = [[number] for number in range(20)]
    firsts = charm.pool.map_async(first, items)
    for item in items:
        item[0] = -1
    assert firsts.get() == list(range(20))
    assert [future.get() for future in charm.pool.map_async(square, range(3), multi_future=True)] == [0, 1, 4]
    assert charm.pool.submit([(square, 3), (first, [7])]) == [9, 7]
    assert charm.pool.Task(square, (3,), ret=True).get() == 9
    assert charm.pool.Task(square, (3,), awaitable=True).get() is None
    assert charm.pool.Task(square, (3,)) is None
    # A result that nobody wants need not travel.
    for function in (makes_a_lambda, makes_a_lambda_in_a_coroutine):
        assert charm.pool.Task(function, (3,), awaitable=True).get() is None
    check_tree_of_tasks()
    check_redefined_function()
    check_placement()
    assert Array(Worker, 2).talk_of_devices(ret=True).get() == [None, "sent"]
    print("collectives passed")
    charm.exit(0)


charm.options.remote_exec = True
charm.start(main)
