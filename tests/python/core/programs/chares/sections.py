"""Sections from Python: calls, reductions, and what is refused. Usage: sections.py WHAT."""

import pickle
import random
import sys

import numpy as np

import weft


def larger(a, b):
    return max(a, b)


class Cell(weft.Chare):
    def __init__(self):
        self.heard = []
        self.log = {}
        self.results = []

    def hear(self, what):
        self.heard.append(what)

    def all_heard(self):
        return self.heard

    def where(self):
        return self.index

    async def where_later(self):
        for _ in range(random.randrange(3)):
            await weft.yield_now()
        return self.index

    def total(self, array):
        return float(array.sum())

    def fail_from(self, index):
        if self.index >= index:
            raise ValueError(f"from {self.index}")

    def contains(self, section, index):
        return index in section and len(section), section.indices

    def give(self, section, reducer, target):
        self.contribute(self.index, reducer, target, section=section)

    def give_list(self, section, target):
        self.contribute([self.index] * (self.index % 3), weft.Reducer.concat, target, section)

    def give_row(self, target):
        row, column = self.index
        self.contribute(np.array([column, 1]), weft.Reducer.sum, target, section=self.proxy[row, :])

    def arrive(self, section, target):
        self.contribute(target=target, section=section)

    def take(self, *values):
        self.results.append(values)

    def taken(self):
        return self.results

    def call_back(self, method):
        method(self.index)

    def note(self, sender, number):
        self.log[sender, number] = self.log.get((sender, number), 0) + 1

    def notes(self):
        return self.log

    def go(self, pe):
        self.migrate(pe)


class Caller(weft.Chare):
    async def run(self, cells, seed):
        choose = random.Random(seed * 1000 + self.index)
        sent = []
        for _ in range(150):
            kind = choose.randrange(4)
            if kind == 0:
                cells[choose.randrange(len(cells))].go(choose.randrange(weft.num_pes()))
            elif kind == 1 and choose.randrange(4) == 0:
                section = cells.section(choose.sample(range(len(cells)), 5))
                assert await section.where.call() == section.indices
            else:
                first = choose.randrange(len(cells))
                section = choose.choice([cells[first::2], cells[first::-1], cells.section([first])])
                section.note(self.index, len(sent))
                sent.append(section.indices)
        return sent


async def calls():
    grid = weft.Array(Cell, (4, 6))
    assert len(grid[1, :]) == 6
    assert len(grid[:, 2]) == 4
    assert grid[1:3, ::3].indices == [(1, 0), (1, 3), (2, 0), (2, 3)]
    assert grid[::-1, 5].indices == [(3, 5), (2, 5), (1, 5), (0, 5)]
    assert grid[-2:, 0].indices == [(2, 0), (3, 0)]
    grid[1, :].hear("row")
    grid[:, 2].hear("column")
    grid.section([(3, 5), (0, 0)]).hear("list")
    grid.section(lambda index: sum(index) == 3).hear("function")
    await weft.quiescence()
    for index, heard in zip(grid.section(lambda _: True).indices, await grid.all_heard.call(), strict=True):
        expected = {
            "row": index[0] == 1,
            "column": index[1] == 2,
            "list": index in [(3, 5), (0, 0)],
            "function": sum(index) == 3,
        }
        assert sorted(heard) == sorted(word for word, holds in expected.items() if holds), (index, heard)

    cells = weft.Array(Cell, 12)
    evens = cells[::2]
    assert evens.indices == [0, 2, 4, 6, 8, 10]
    assert await evens.where.call() == evens.indices
    some = cells.section([7, 1, 10, 2])
    assert await some.where_later.call() == [7, 1, 10, 2]
    assert await cells[8:3:-2].where.call() == [8, 6, 4]
    assert await cells[3:3].where.call() == []
    assert await some.contains.call(some, 10) == [(4, [7, 1, 10, 2])] * 4
    for size in (3, 20_000, 300_000):
        array = np.ones(size)
        assert await some.total.call(array) == [size] * 4
        assert await some.total.call(weft.nocopy(array)) == [size] * 4
        await some.total(weft.nocopy(array))
        await cells[3:3].total(weft.nocopy(array))
    try:
        await some.fail_from.call(7)
        raise AssertionError("not raised")
    except weft.RemoteError as error:
        assert error.message.startswith("from "), error

    # Sections of sections.
    assert evens[1].index == 2
    assert [cell.index for cell in evens[1:4]] == [2, 4, 6]
    assert evens[::-2].indices == [10, 6, 2]
    assert some[1:3].indices == [1, 10]
    assert some[::-1].indices == [2, 10, 1, 7]
    assert some.section(lambda index: index > 5).indices == [7, 10]
    assert some.section([10, 7]).indices == [10, 7]
    halves = cells.split(2)
    assert [half.indices for half in halves] == [list(range(6)), list(range(6, 12))]
    assert [part.indices for part in some.split(3)] == [[7, 1], [10], [2]]
    both = weft.combine(some, halves[0])
    assert both.indices == [7, 1, 10, 2, 0, 3, 4, 5]
    assert await both.where.call() == both.indices
    assert cells.section(range(0, 12, 2)) == evens
    assert hash(cells.section(range(0, 12, 2))) == hash(evens)
    assert evens != cells[::3]
    assert 4 in evens
    assert 5 not in evens
    assert evens.collection == cells
    assert "6 chares of Cell" in repr(evens)
    assert pickle.loads(pickle.dumps(some)) == some
    assert pickle.loads(pickle.dumps([evens.hear]))[0] == evens.hear
    assert evens.hear != some.hear
    assert evens.hear != cells.hear
    group = weft.Group(Cell)
    assert await group[:1].where.call() == [0]


async def reductions():
    cells = weft.Array(Cell, 12)
    some = cells.section([7, 1, 10, 2])
    for _ in range(3):
        for reducer, expected in [
            (weft.Reducer.sum, 20),
            (weft.Reducer.max, 10),
            (weft.Reducer.gather, [7, 1, 10, 2]),
            (weft.Reducer.custom(larger), 10),
        ]:
            done = weft.Future()
            some.give(some, reducer, done)
            assert await done == expected
        done = weft.Future()
        some.give_list(some, done)
        assert await done == [7, 1, 10, 2, 2]
        done = weft.Future()
        some.arrive(some, done)
        assert await done is None

    # The members make their section on their own.
    grid = weft.Array(Cell, (3, 5))
    for row in range(3):
        done = weft.Future()
        grid[row, :].give_row(done)
        assert (await done).tolist() == [10, 5]

    # Methods as targets, as arguments and with bound arguments.
    low = cells[:4]
    some.give(some, weft.Reducer.sum, low.take)
    some.give(some, weft.Reducer.sum, low.take.bind("bound"))
    some.give(some, weft.Reducer.sum, cells.take.bind("all"))
    some.give(some, weft.Reducer.sum, cells[5].take.bind("one"))
    cells[9].call_back(cells[4:6].take)
    await weft.quiescence()
    taken = await cells.taken.call()
    for i, results in enumerate(taken):
        expected = [("all", 20)]
        if i < 4:
            expected += [(20,), ("bound", 20)]
        if i == 5:
            expected.append(("one", 20))
        if i in (4, 5):
            expected.append((9,))
        assert sorted(results, key=repr) == sorted(expected, key=repr), (i, results)


async def expect_error(awaitable, words):
    try:
        await awaitable
    except weft.Error as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"nothing says {words}")


def expect_refusal(function, words):
    try:
        function()
    except weft.Error as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"nothing says {words}")


async def refused():
    grid = weft.Array(Cell, (4, 6))
    cells = weft.Array(Cell, 12)
    expect_refusal(lambda: grid[:], "needs one range for each of its 2 dimensions, not 1")
    expect_refusal(lambda: grid[:, :, 1], "2 dimensions, not 3")
    expect_refusal(lambda: grid[7, :], "outside")
    expect_refusal(lambda: grid[-1, :], "outside")
    expect_refusal(lambda: cells.section([1, 2, 1]), "Cell[1] is in the list")
    expect_refusal(lambda: cells.section([12]), "index 12 is outside Cell")
    expect_refusal(lambda: cells.section(3.5), "a function or from indices")
    expect_refusal(lambda: cells.split(0), "at least 1 part")
    expect_refusal(lambda: cells[:3].section([5]), "Cell[5] is no member")
    expect_refusal(lambda: cells[:3][3], "place 3 is outside")
    expect_refusal(lambda: weft.combine(cells[:3], 3), "takes sections")
    expect_refusal(lambda: weft.combine(), "at least one")
    try:
        cells.section(lambda index: 1 // index)
        raise AssertionError("not raised")
    except ZeroDivisionError:
        pass
    try:
        cells[:3].nothing(1)
        raise AssertionError("not raised")
    except AttributeError as error:
        assert "no entry method 'nothing'" in str(error), error

    class Unreadable:
        def __iter__(self):
            raise ValueError("not to be read")

    class Unnumbered:
        def __index__(self):
            raise ValueError("no number")

    for unfit in (Unreadable(), [Unnumbered()]):
        try:
            cells.section(unfit)
            raise AssertionError("not raised")
        except ValueError:
            pass
    some = cells[:3]
    for index in (0, 2, np.int64(1)):
        assert index in some
    assert all(member in some for member in some)
    for index in (3, -1, 12, 2**40, "x", None, 1.0, (0,) * 9, (0, 1), cells[3], weft.Array(Cell, 12)[1]):
        assert index not in some, index
    assert (1, 2) in grid[1, :] and (2, 1) not in grid[1, :] and 1 not in grid[1, :]
    done = weft.Future()
    await expect_error(cells[5].give.call(cells[:3], weft.Reducer.sum, done), "in which it is no member")
    await expect_error(cells[5].give.call(grid[0, :], weft.Reducer.sum, done), "in which it is no member")
    await expect_error(cells[5].give.call(cells, weft.Reducer.sum, done), "section is a weft.Section")

    sparse = weft.Array(Cell, 100, sparse=True)
    for i in (3, 50):
        await sparse.insert(i)
    await sparse.done_inserting()
    expect_refusal(lambda: sparse[:], "sparse array")
    expect_refusal(lambda: sparse.split(2), "sparse array")
    expect_refusal(lambda: sparse.section(lambda _: True), "sparse array")
    assert await sparse.section([50, 3]).where.call() == [50, 3]
    await expect_error(sparse.section([50, 4, 3]).where.call(), "finds no element")

    some = cells.section([7, 1, 10])
    some[:2].give(some, weft.Reducer.sum, done)
    await weft.quiescence()
    await cells.destroy()
    await expect_error(done, "was destroyed before the reduction was complete")
    expect_refusal(lambda: some.hear(1), "the collection Cell has been destroyed")


async def moving():
    seed = random.randrange(2**31)
    print(f"seed {seed}")
    cells = weft.Array(Cell, 11)
    sent = await weft.Group(Caller).run.call(cells, seed)
    await weft.quiescence()
    expected = [{} for _ in range(11)]
    for sender, sections in enumerate(sent):
        for number, indices in enumerate(sections):
            for i in indices:
                expected[i][sender, number] = 1
    assert await cells.notes.call() == expected
    # The counts of reductions move with the members.
    section = cells.section([8, 3, 5, 0])
    for round in range(12):
        cells[section[round % 4].index].go((round * 7) % weft.num_pes())
        done = weft.Future()
        section.give(section, weft.Reducer.gather, done)
        assert await done == [8, 3, 5, 0]


KEPT = []


async def main():
    cells = weft.Array(Cell, 100)
    KEPT.extend([cells[::2], cells[1::2]])
    await {"calls": calls, "reductions": reductions, "refused": refused, "moving": moving}[sys.argv[1]]()
    print("all checked")


weft.run(main)
# Sections outlive the job, as members of a set may.
if KEPT:  # PE 0 has made them
    assert len({*KEPT, KEPT[0]}) == 2 and KEPT[0] != KEPT[1]
