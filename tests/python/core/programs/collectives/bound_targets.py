"""Entry methods with bound arguments, as targets of reductions and in calls; checks itself."""

import numpy as np

import weft

COUNT = 6


class Part(weft.Chare):
    def __init__(self):
        self.got = []

    def give(self, value, reducer, to, bound):
        element = self.proxy if to is None else self.proxy[to]
        self.contribute(value, reducer, element.take.bind(*bound))

    def give_nothing(self, to, bound):
        element = self.proxy if to is None else self.proxy[to]
        self.contribute(target=element.take.bind(*bound))

    def give_own(self):
        # The target of any element is used: each binds the same.
        self.contribute(self.index, weft.Reducer.gather, self.proxy[1].take.bind("own").bind(2, None))

    def give_to_other(self, other, tag):
        self.contribute(1, weft.Reducer.sum, other.take.bind(tag))

    def take(self, *arguments, **keywords):
        self.got.append((arguments, keywords))
        return arguments

    def taken(self):
        got, self.got = self.got, []
        return got

    def keep(self, tag, array):
        self.array = array

    @weft.post_entry("keep")
    def post_keep(self, tag, array):
        pass


def error_of(function):
    try:
        function()
    except Exception as error:
        return error
    return None


async def taken(parts):
    await weft.quiescence()
    return await parts.taken.call()


async def main():
    parts = weft.Array(Part, COUNT)
    cases = (
        (1, weft.Reducer.sum, COUNT),
        ([1], weft.Reducer.concat, [1] * COUNT),
        ((2,), weft.Reducer.gather, [(2,)] * COUNT),
        (3.5, weft.Reducer.max, 3.5),
        (7, weft.Reducer.logical_and, True),
    )
    for bound in ((), ("a",), (1, {"k": [2.5]}), tuple(range(255 - 1)), (parts[2], "x" * 100_000)):
        for value, reducer, result in cases:
            for to in (0, COUNT - 1, None):
                parts.give(value, reducer, to, bound)
                for index, got in enumerate(await taken(parts)):
                    expected = [((*bound, result), {})] if to in (None, index) else []
                    assert got == expected, (bound, reducer, to, index)
        parts.give_nothing(None, bound)
        assert await taken(parts) == [[(bound, {})]] * COUNT

    parts.give(1, weft.Reducer.sum, 3, (np.arange(4.0),))
    (((array, total), _),) = (await taken(parts))[3]
    assert array.tolist() == [0, 1, 2, 3] and total == COUNT

    parts.give_own()
    assert (await taken(parts))[1] == [(("own", 2, None, list(range(COUNT))), {})]

    # To all elements of a collection that another PE has made, and of a group.
    for other in (weft.Group(Part), weft.Array(Part, 3, map="round_robin")):
        parts.give_to_other(other, "other")
        assert await taken(other) == [[(("other", COUNT), {})]] * len(other)

    # In calls.
    bound = parts[4].take.bind("tag", 5)
    assert await bound.call(6, key=7) == ("tag", 5, 6)
    assert await bound.call() == ("tag", 5)
    bound(1)
    await bound.send(2)
    expected = [("tag", 5, 6), ("tag", 5), ("tag", 5, 1), ("tag", 5, 2)]
    assert [arguments for arguments, _ in (await taken(parts))[4]] == expected
    assert await parts.take.bind(0).call(1) == [(0, 1)] * COUNT
    # A copy, made when it was bound.
    values = [1]
    bound = parts[0].take.bind(values)
    values.append(2)
    assert await bound.call() == ([1],)

    many = parts[0].take.bind(*range(255))
    assert "more than 255 arguments" in str(error_of(lambda: many(1)))
    assert "more than 255 arguments" in str(error_of(lambda: many.bind(1)))
    assert "argument 2 of Part[0].take" in str(error_of(lambda: parts[0].take.bind(1, lambda: 0)))
    assert "argument 3 of Part[0].take" in str(error_of(lambda: parts[0].take.bind(1, 2)(lambda: 0)))
    assert isinstance(error_of(lambda: parts[0].take.bind(key=1)), TypeError)
    error = error_of(lambda: parts[0].take.bind(weft.nocopy(np.zeros(3))))
    assert isinstance(error, weft.Error) and "bound arguments" in str(error), error
    assert "has a post entry method" in str(error_of(lambda: parts[0].keep.bind(1)))
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
