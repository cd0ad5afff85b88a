"""Aggregated calls; checks itself. The first argument says what; a second one, "grid": through a grid."""

import random
import sys
import threading

import numpy as np

import weft

COUNT = 10


class Log(weft.Chare):
    def __init__(self):
        self.numbers = []

    def note(self, number):
        self.numbers.append(number)

    def note_and_set(self, number, noted):
        self.numbers.append(number)
        noted.set(None)

    def take(self, *arguments, **keywords):
        self.numbers.append((arguments, keywords))

    async def note_later(self, number):
        await weft.yield_now()
        self.numbers.append(number)

    def note_at(self, logs, element, count):
        """Calls of this PE, without a flush."""
        note = logs.aggregated().note
        for number in range(count):
            note(element, number)

    def go(self, pe):
        self.migrate(pe)

    def flush(self):
        self.numbers.append("flushed")

    def fail(self):
        raise ValueError("a mistake")

    def taken(self):
        numbers, self.numbers = self.numbers, []
        return numbers


async def taken(logs):
    await weft.quiescence()
    return await logs.taken.call()


async def order(logs):
    many = logs.aggregated()
    note = many.note
    for number in range(2000):
        for element in range(COUNT):
            await (note(element, number) if number % 2 else many[element].note(number))
        if number % 700 == 0:
            many.flush()
        if number % 900 == 0:
            await weft.yield_now()
    assert await taken(logs) == [list(range(2000))] * COUNT


async def arguments(logs):
    values = [None, 7, "text", b"bytes", (1, [2.5]), {"key": {3}}, np.arange(5.0)]
    many = logs.aggregated()
    for element in range(COUNT):
        many[element].take(*values, word="by name")
        many.take(element)
        logs[element].aggregated().note_later(8)
    for numbers in await taken(logs):
        (got, keywords), nothing, later = numbers
        assert repr(got) == repr(tuple(values)) and keywords == {"word": "by name"}
        assert nothing == ((), {}) and later == 8


async def large(logs):
    sizes = [1, 900, 1000, 1010, 1020, 1030, 5000, 100_000]
    for size in sizes:
        logs.aggregated().take(9, bytes(size))
        logs.aggregated().take(9, np.zeros(size, np.uint8))
        await logs.aggregated().take(9, weft.nocopy(np.ones(size, np.uint8)))
    got = sorted(len(arguments[0]) for arguments, _ in (await taken(logs))[9])
    assert got == sorted(3 * sizes)


class Large:
    """More than a bundle takes. Counts how often it is pickled."""

    pickled = 0

    def __reduce__(self):
        Large.pickled += 1
        return bytes, (bytes(2000),)


async def large_objects(logs):
    logs.aggregated().note(9, Large())
    logs[9].aggregated().note(Large())
    assert Large.pickled == 2
    assert (await taken(logs))[9] == [bytes(2000)] * 2


async def changes(logs):
    """What the caller changes after the call never reaches the callee."""
    value = [1, 2]
    for element in range(COUNT):
        logs.aggregated().note(element, value)
    value.append(3)
    assert await taken(logs) == [[[1, 2]]] * COUNT


async def idle(logs):
    for element in range(COUNT):
        noted = weft.Future()
        logs.aggregated().note_and_set(element, 1, noted)
        await noted
    noted = weft.Future()
    logs.aggregated().note_and_set(COUNT - 1, 1, noted)
    polls = 0
    while not noted.done():
        await weft.yield_now()
        polls += 1
        assert polls < 1_000_000
    await taken(logs)


async def quiescence(logs):
    for element in range(COUNT):
        logs[element].note_at(logs, COUNT - 1 - element, 100)
    assert await taken(logs) == [list(range(100))] * COUNT


async def moves(logs):
    seed = random.randrange(2**32)
    print("seed", seed)
    choose = random.Random(seed)
    many = logs.aggregated()
    for number in range(500):
        for element in range(COUNT):
            many[element].note(number)
        if number % 3 == 0:
            logs[choose.randrange(COUNT)].go(choose.randrange(weft.num_pes()))
        if choose.random() < 0.1:
            await weft.yield_now()
    for numbers in await taken(logs):
        assert sorted(numbers) == list(range(500))


async def refusals(logs):
    many = logs.aggregated()

    def expect(kind, words, call):
        try:
            call()
        except kind as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"{words!r} was not raised")

    expect(AttributeError, "Use proxy.note.call, of the proxy itself", lambda: many.note.call(0, 1))
    expect(AttributeError, "Use proxy.note.send, of the proxy itself", lambda: many[0].note.send(1))
    expect(AttributeError, "nothing comes back", lambda: many.note.bind(1))
    expect(AttributeError, "has no entry method 'nothing'", lambda: many.nothing)
    expect(AttributeError, "a proxy has no state", lambda: setattr(many, "note", 1))
    expect(TypeError, "takes the index of a chare first", lambda: many.note())
    expect(TypeError, "note", lambda: many.note(0))
    expect(TypeError, "note", lambda: many[0].note(1, 2))
    expect(TypeError, "has no index", lambda: many[0][1])
    expect(weft.Error, "outside", lambda: many.note(COUNT, 1))
    expect(weft.Error, "outside", lambda: many[COUNT])
    expect(weft.Error, "argument 1", lambda: many.take(0, threading.Lock()))
    assert repr(many) == "<weft.AggregatedProxy of Log>", repr(many)
    assert repr(many[3]) == "<weft.AggregatedProxy Log[3]>", repr(many[3])
    assert repr(many[3].note) == "<aggregated weft.EntryMethod Log[3].note>", repr(many[3].note)
    assert "note" in dir(many) and "flush" in dir(many)
    many.flush()  # its own function, not the entry method
    logs[0].flush()
    assert await taken(logs) == [["flushed"], *[[]] * (COUNT - 1)]
    await logs.destroy()
    expect(weft.Error, "has been destroyed", lambda: many.note(9, 1))


async def threads(logs):
    """A call on another thread travels alone."""
    thread = threading.Thread(target=lambda: [logs.aggregated().note(9, number) for number in range(100)])
    thread.start()
    while thread.is_alive():
        await weft.yield_now()
    assert sorted((await taken(logs))[9]) == list(range(100))


async def failing(logs):
    logs.aggregated().fail(9)
    await weft.Future()


class Gridded(weft.Chare):
    def __init__(self):
        weft._core._aggregate_through_grid()


async def main():
    if sys.argv[2:] == ["grid"]:
        await weft.Group(Gridded).created()
    await globals()[sys.argv[1]](weft.Array(Log, COUNT))
    print("all checked")


weft.run(main)
