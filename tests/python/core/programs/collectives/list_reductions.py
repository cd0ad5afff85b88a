"""Reductions of lists and array.array, element by element; checks itself.

list_reductions.py MODE: a reduction that ends the job.
"""

import sys
from array import array
from fractions import Fraction

import weft

COUNT = 5
REDUCERS = ("sum", "product", "min", "max", "logical_and", "logical_or", "logical_xor")


def product(values):
    result = 1
    for value in values:
        result *= value
    return result


EXPECTED = {
    "sum": sum,
    "product": product,
    "min": min,
    "max": max,
    "logical_and": all,
    "logical_or": any,
    "logical_xor": lambda values: sum(map(bool, values)) % 2 == 1,
}


def row(index):
    return [index, 3 - index, 2, 0]


class Part(weft.Chare):
    async def lists(self, name):
        return await self.allreduce(row(self.index), getattr(weft.Reducer, name))

    async def arrays(self, name, code):
        return await self.allreduce(array(code, row(self.index)), getattr(weft.Reducer, name))

    async def values(self, all_values, name):
        return await self.allreduce(all_values[self.index], getattr(weft.Reducer, name))

    def give(self, target):
        self.contribute([self.index, 0.5], weft.Reducer.sum, target)

    def refused(self):
        texts = []
        for value in (None, ["a"], [[1]], [1, None], [1, 2, (3,)]):
            for name in ("sum", "max", "logical_and"):
                try:
                    self.allreduce(value, getattr(weft.Reducer, name))
                except weft.Error as error:
                    assert f"weft.Reducer.{name}" in str(error), error
                    texts.append(str(error))
        return texts


async def check(count):
    parts = weft.Array(Part, count)
    columns = list(zip(*map(row, range(count)), strict=True))
    for name in REDUCERS:
        expected = [EXPECTED[name](column) for column in columns]
        for result in await parts.lists.call(name):
            assert result == expected, (name, result)
            assert [type(x) for x in result] == [type(x) for x in expected], (name, result)
        for code in "bhilqfd":
            for result in await parts.arrays.call(name, code):
                if name.startswith("logical"):
                    assert result == expected, (name, code, result)
                else:
                    assert result == array(code, expected) and result.typecode == code, (name, code, result)

    target = weft.Future()
    parts.give(target)
    assert await target == [sum(range(count)), 0.5 * count]

    nan = float("nan")
    for values, name, expected in (
        ([[Fraction(1, 2), True, 2j]] * count, "sum", [Fraction(count, 2), count, 2j * count]),
        ([[]] * count, "sum", []),
        ([array("d")] * count, "min", array("d")),
        ([[nan if i == count - 1 else i] for i in range(count)], "max", None),
        ([array("d", [nan if i == 0 else i]) for i in range(count)], "min", None),
        ([[2**70, i] for i in range(count)], "max", [2**70, count - 1]),
        # Tuples and text have their own operators.
        ([(i,) for i in range(count)], "max", (count - 1,)),
    ):
        for result in await parts.values.call(values, name):
            if expected is None:
                assert result[0] != result[0], (values, name, result)
            else:
                assert result == expected and type(result) is type(expected), (values, name, result)

    for texts in await parts.refused.call():
        assert len(texts) == 15, texts
        assert "None was contributed" in texts[0] and "contribute(target=target)" in texts[0], texts
        assert "element 0" in texts[3] and "of type str" in texts[3], texts
        assert "element 1" in texts[9] and "element 2" in texts[12], texts


async def main():
    for count in (1, 2, COUNT):
        await check(count)
    return "all checked"


ENDING = {
    "lengths": [[1, 2], [1]],
    "codes": [array("d", [1]), array("f", [1])],
    "kinds": [[1], array("q", [1])],
    "number": [[1], 1],
    "overflow": [array("b", [100])] * 2,
}


async def end():
    await weft.Array(Part, 2).values.call(ENDING[sys.argv[1]], "sum")


result = weft.run(end if len(sys.argv) > 1 else main)
if result is not None:
    print(result)
