"""Combined sections from Python: chares of several collections, also of several classes.

Usage: combined_sections.py WHAT.
"""

import pickle
import random
import sys

import numpy as np

import weft


def larger(a, b):
    return max(a, b)


class Node(weft.Chare):
    def __init__(self, base):
        number = self.index if isinstance(self.index, int) else 10 * self.index[0] + self.index[1]
        self.name = 100 * base + number
        self.heard = 0
        self.results = []

    def hear(self):
        self.heard += 1

    def count(self):
        return self.heard

    def get_name(self):
        return self.name

    async def get_name_later(self):
        for _ in range(self.name % 4):
            await weft.yield_now()
        return self.name

    def total(self, array):
        return float(array.sum()) + self.name

    def fail_from(self, least):
        if self.name % 100 >= least:
            raise ValueError(f"from {self.name}")

    def contains(self, section):
        return self.proxy[self.index] in section, len(section), [member.index for member in section]

    def give(self, section, reducer, target):
        self.contribute(self.name, reducer, target, section=section)

    def give_vector(self, section, target):
        self.contribute(np.array([self.name, 1.0]), weft.Reducer.sum, target, section=section)

    def give_list(self, section, target):
        self.contribute([self.name] * (self.name % 3), weft.Reducer.concat, target, section)

    def give_each(self, section, targets):
        for number, target in enumerate(targets):
            self.contribute(number, weft.Reducer.sum, target, section)

    def arrive(self, section, target):
        self.contribute(target=target, section=section)

    def give_to_both(self, first, second, target):
        self.contribute(1, weft.Reducer.sum, target, weft.combine(first, second))

    def take(self, *values):
        self.results.append(values)

    def taken(self):
        return self.results

    def call_back(self, method):
        method(self.name)

    def go(self, pe):
        self.migrate(pe)


# Its methods have other numbers than those of Node, and not all of them.
class Wall(Node):
    def a_method_before_all_others(self):
        pass

    def of_walls(self):
        pass


class Placing(weft.Chare):
    def __init__(self):
        self.store = np.zeros(1000)

    @weft.post_entry("total")
    def post_total(self, array):
        array.into(self.store)

    def total(self, array):
        assert array is self.store
        return float(self.store.sum())

    def get_name(self):
        return "placing"


NAMES = [107, 101, 210, 211, 212, 103, 300]


def make():
    nodes = weft.Array(Node, 8, args=(1,))
    walls = weft.Array(Wall, (2, 3), args=(2,))
    single = weft.Singleton(Wall, pe=weft.num_pes() - 1, args=(3,))
    some = weft.combine(nodes.section([7, 1]), walls[1, :], nodes[3:3], nodes[3], single)
    return nodes, walls, some


async def calls():
    nodes, walls, some = make()
    assert isinstance(some, weft.CombinedSection)
    assert len(some) == 7
    some.hear()
    assert await some.get_name.call() == NAMES
    assert await some.get_name_later.call() == NAMES
    await some.hear.call()
    await weft.quiescence()
    assert await some.count.call() == [2] * 7
    assert await nodes.count.call() == [0, 2, 0, 2, 0, 0, 0, 2]
    assert await some.contains.call(some) == [(True, 7, [7, 1, (1, 0), (1, 1), (1, 2), 3, 0])] * 7
    assert await nodes[0].contains.call(some) == (False, 7, [7, 1, (1, 0), (1, 1), (1, 2), 3, 0])
    for size in (3, 20_000, 300_000):
        array = np.ones(size)
        expected = [size + name for name in NAMES]
        assert await some.total.call(array) == expected
        assert await some.total.call(weft.nocopy(array)) == expected
        await some.total(weft.nocopy(array))
        await some.total.send(array)
    for several in (some, weft.combine(walls, nodes)):
        try:
            await several.fail_from.call(2)
            raise AssertionError("not raised")
        except weft.RemoteError as error:  # of any member that raises
            assert error.message.startswith("from "), error
    assert await weft.combine(nodes[:0], walls[0, :0]).get_name.call() == []
    nodes[5].call_back(some.take)
    nodes[5].call_back(some.take.bind("bound"))
    await weft.quiescence()
    assert [sorted(taken, key=repr) for taken in await some.taken.call()] == [[("bound", 105), (105,)]] * 7

    # As values.
    assert [member.index for member in some] == [7, 1, (1, 0), (1, 1), (1, 2), 3, 0]
    assert some[5] == nodes[3] and some[3] == walls[1, 1]
    assert nodes[7] in some and nodes[0] not in some and walls[0, 0] not in some
    assert 7 not in some and "x" not in some and None not in some
    assert [len(part) for part in some.parts] == [2, 3, 1, 1]
    assert some.parts[0] == nodes.section([7, 1]) and some.parts[2].collection == nodes
    again = weft.combine(*some.parts)
    assert again == some and hash(again) == hash(some) and again.take == some.take
    assert some != weft.combine(walls, nodes) and some != nodes[:] and some.take != some.hear
    assert some.take.bind(1) != some.take.bind(2) and some.take.bind(1) == again.take.bind(1)
    assert hash(some.take) == hash(again.take)
    assert repr(some) == "<weft.CombinedSection of 7 chares of Node, Wall>", some
    assert pickle.loads(pickle.dumps(some)) == some
    assert pickle.loads(pickle.dumps([some.take.bind(1)]))[0] == some.take.bind(1)
    # An element has one place.
    both = weft.combine(nodes[2:4], walls[0, :], nodes, walls[0, 1])
    assert await both.get_name.call() == [102, 103, 200, 201, 202, 100, 101, 104, 105, 106, 107]
    assert weft.combine(nodes[:3], nodes[3:]) == nodes[:]
    assert weft.combine(nodes[:0], some, walls[0, :0]) == some

    # A post entry method of one of the classes.
    placing = weft.Array(Placing, 2)
    mixed = weft.combine(nodes[:1], placing)
    assert await mixed.get_name.call() == [100, "placing", "placing"]
    assert await mixed.total.call(np.ones(1000)) == [1100, 1000, 1000]


async def reductions():
    nodes, walls, some = make()
    for _ in range(3):
        for reducer, expected in [
            (weft.Reducer.sum, sum(NAMES)),
            (weft.Reducer.max, 300),
            (weft.Reducer.gather, NAMES),
            (weft.Reducer.custom(larger), 300),
        ]:
            done = weft.Future()
            some.give(some, reducer, done)
            assert await done == expected
        done = weft.Future()
        some.give_vector(some, done)
        assert (await done).tolist() == [sum(NAMES), 7]
        done = weft.Future()
        some.give_list(some, done)
        assert await done == [name for name in NAMES for _ in range(name % 3)]
        done = weft.Future()
        some.arrive(some, done)
        assert await done is None
        # The members make it on their own.
        done = weft.Future()
        weft.combine(nodes, walls).give_to_both(nodes, walls, done)
        assert await done == 14

    to = weft.combine(walls[0, 0], nodes[4])
    some.give(some, weft.Reducer.sum, to.take)
    some.give(some, weft.Reducer.sum, to.take.bind("bound"))
    some.give(some, weft.Reducer.sum, nodes[4:6].take.bind("part"))
    some.give(some, weft.Reducer.sum, nodes.take.bind("all"))
    some.arrive(some, to.hear)
    await weft.quiescence()
    total = sum(NAMES)
    on_wall, on_node = (sorted(taken, key=repr) for taken in await to.taken.call())
    assert on_wall == [("bound", total), (total,)], on_wall
    assert on_node == [("all", total), ("bound", total), ("part", total), (total,)], on_node
    assert await to.count.call() == [1, 1]

    # In flight together, while members move.
    seed = random.randrange(2**31)
    print(f"seed {seed}")
    choose = random.Random(seed)
    for _ in range(10):
        for member in some.parts[0]:
            member.go(choose.randrange(weft.num_pes()))
        some.parts[1][choose.randrange(3)].go(choose.randrange(weft.num_pes()))
        results = [weft.Future() for _ in range(20)]
        some.give_each(some, results)
        assert await weft.gather(*results) == [7 * number for number in range(20)]
        assert await some.get_name.call() == NAMES


async def expect_error(awaitable, words):
    try:
        await awaitable
    except weft.Error as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"nothing says {words}")


def expect_refusal(function, words, kind=weft.Error):
    try:
        function()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"nothing says {words}")


async def refused():
    nodes, walls, some = make()
    sparse = weft.Array(Node, 100, sparse=True)
    await sparse.insert(3, 4)
    await sparse.done_inserting()
    expect_refusal(lambda: weft.combine(), "at least one")
    expect_refusal(lambda: weft.combine(nodes, 3), "takes sections, such as")
    expect_refusal(lambda: weft.combine(nodes, sparse), "sparse array")
    expect_refusal(lambda: some[7], "place 7 is outside of a combined section of 7 chares")
    expect_refusal(lambda: some[-1], "place -1 is outside")
    expect_refusal(lambda: some[:2], "has no slices")
    expect_refusal(
        lambda: some.of_walls, "the chare class Node has no entry method 'of_walls'", AttributeError
    )
    expect_refusal(lambda: some.total.bind(weft.nocopy(np.ones(2))), "is sent in place")
    placing = weft.combine(nodes, weft.Array(Placing, 1))
    expect_refusal(lambda: placing.total.bind(1), "has a post entry method")

    done = weft.Future()
    await expect_error(nodes[5].give.call(some, weft.Reducer.sum, done), "in which it is no member")
    mixed = weft.combine(nodes[5], sparse.section([3]))
    assert await mixed.get_name.call() == [105, 403]
    await expect_error(nodes[5].give.call(mixed, weft.Reducer.sum, done), "of Node, a sparse array")

    some.parts[0].give(some, weft.Reducer.sum, done)
    await weft.quiescence()
    await walls.destroy()
    await expect_error(done, "the collection Wall was destroyed before the reduction was complete")
    expect_refusal(some.hear, "the collection Wall has been destroyed")
    expect_refusal(some.hear.call, "the collection Wall has been destroyed")
    late = weft.Future()
    await expect_error(nodes[7].give.call(some, weft.Reducer.sum, late), "Wall has been destroyed")
    assert await nodes[7].get_name.call() == 107


KEPT = []


async def main():
    nodes = weft.Array(Node, 10, args=(1,))
    walls = weft.Array(Wall, 10, args=(2,))
    KEPT.extend([weft.combine(nodes, walls), weft.combine(nodes[::2], walls)])
    await {"calls": calls, "reductions": reductions, "refused": refused}[sys.argv[1]]()
    print("all checked")


weft.run(main)
# They outlive the job, as members of a set may.
if KEPT:  # PE 0 has made them
    assert len({*KEPT, KEPT[0]}) == 2 and KEPT[0] != KEPT[1]
