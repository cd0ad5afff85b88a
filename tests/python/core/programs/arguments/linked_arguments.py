"""Objects of several arguments of a call arrive as one object; checks itself."""

import threading

import numpy as np
from refusing import refused

import weft


class Node:
    """Travels by pickle."""

    def __init__(self, links):
        self.links = links


def same(*values):
    """Whether the values are one object; the chares of a PE may share what nothing can change."""
    if isinstance(values[0], str):
        return all(value == values[0] for value in values)
    return all(value is values[0] for value in values)


class Worker(weft.Chare):
    def __init__(self, first=None, second=None, again=None):
        assert same(first, second, again)
        self.is_open = False

    def check(self, kind, first, second, *, third):
        if kind == "plain":
            found = same(first, second, third)
        elif kind == "inside":
            found = same(first, second[0], third["again"])
        elif kind == "object":
            found = same(first, second.links[0], third.links) and second.links[1] is second
        else:
            found = not same(first, second) and not same(second, third)
        return bool(found)

    def change(self, first, second):
        first.append(1)
        return second

    @weft.when(lambda self, first, second: self.is_open)
    def check_later(self, first, second):
        return same(first, second[0])

    def open(self):
        self.is_open = True

    def move(self, pe):
        self.migrate(pe)

    def bound(self, first, second, third, fourth):
        return same(first, second), same(third, fourth), same(first, third)

    @weft.post_entry("landed")
    def post_landed(self, first, second, values):
        self.rooms = [np.zeros(3), np.zeros(3)]
        first.into(self.rooms[0])
        second.into(self.rooms[1])

    def landed(self, first, second, values):
        return same(first, self.rooms[0]), same(second, self.rooms[1]), same(values[0], values[1])


def check_there(first, second, *, third):
    return same(first, second, third)


async def calls(to):
    for value in ([1], {"a": 1}, ([],), np.arange(3), np.arange(100_000.0), "x" * 5000, Node([1]), {1}):
        assert await to.check.call("plain", value, value, third=value) in (True, [True] * 3), value
        assert await to.check.call("inside", value, [value], third={"again": value}) in (True, [True] * 3)
        node = Node([value])
        node.links.append(node)
        other = Node(value)
        assert await to.check.call("object", value, node, third=other) in (True, [True] * 3), value
    # What is equal is not the same.
    assert await to.check.call("different", [1], [1], third=[1]) in (True, [True] * 3)
    assert await to.change.call((shared := []), shared) in ([1], [[1]] * 3)
    assert shared == []


async def main():
    last = weft.num_pes() - 1
    value = [1]
    workers = await weft.Array(Worker, 3, args=(value, value, value))
    await calls(workers[2])
    await calls(workers[0])
    await calls(workers)
    # What waits in a chare that moves.
    shared = {"a": 1}
    waits = [workers[0].check_later.call(shared, (shared,)) for _ in range(2)]
    workers[0].move(last)
    await weft.quiescence()
    workers[0].open()
    assert [await wait for wait in waits] == [True, True]
    # Bound arguments were sent with another call.
    bound = workers[1].bound.bind(value, value)
    assert await bound.call(value, value) == (True, True, False)
    # A post entry method chooses a place for each array.
    array = np.arange(3.0)
    assert await workers[1].landed.call(array, array, (value, value)) == (True, True, True)
    assert await weft.pgas.world().rpc(last, check_there, value, value, third=value)
    # Which argument cannot travel.
    lock = threading.Lock()
    wrong = ((value, value, lock, 0), 3), ((Node(lock), value, 0, 0), 1), ((value, [value, lock], 0, 0), 2)
    for arguments, number in wrong:
        refused(f"argument {number} of Worker[1].bound", workers[1].bound.call, *arguments)
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
