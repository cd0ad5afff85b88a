"""Reductions with --ordered-reductions have the bits of the elements' order, on any number of PEs.

Checks itself against a loop over the elements.
"""

import random

import numpy as np

import weft

COUNT = 23
LARGE = 20_000  # numbers of a contribution that is large


def value_of(index):
    return random.Random(index).uniform(-1, 1) * 10.0 ** (index % 17 - 8)


def array_of(index, count=LARGE):
    return np.random.default_rng(index).standard_normal(count) * 10.0 ** (index % 17 - 8)


def blend(a, b):
    return a / 3 + b


def in_order(values, merge=lambda a, b: a + b):
    total, *others = values
    for value in others:
        total = merge(total, value)
    return total


class Part(weft.Chare):
    async def give_all(self):
        totals = [await self.allreduce(value_of(self.index), weft.Reducer.sum)]
        totals.append(await self.allreduce(array_of(self.index), weft.Reducer.sum))
        totals.append(await self.allreduce(value_of(self.index), weft.Reducer.custom(blend)))
        await self.allreduce()  # without a value
        assert totals[0] == in_order(map(value_of, range(COUNT)))
        assert np.array_equal(totals[1], in_order(map(array_of, range(COUNT))))
        assert totals[2] == in_order(map(value_of, range(COUNT)), blend)
        assert await self.allreduce(self.index, weft.Reducer.gather) == list(range(COUNT))

    def give(self, target, reducer):
        self.contribute(value_of(self.index), reducer, target)

    def give_large(self, target):
        self.contribute(array_of(self.index), weft.Reducer.sum, target)

    def give_of_section(self, target):
        self.contribute(value_of(self.index), weft.Reducer.sum, target, section=self.proxy[1::3])

    def move(self):
        self.migrate((weft.my_pe() + 1) % weft.num_pes())


class Member(weft.Chare):
    def give(self, target):
        self.contribute(1, weft.Reducer.sum, target)


async def result_of(call, *arguments):
    done = weft.Future()
    call(done, *arguments)
    return await done


async def check(parts):
    await parts.give_all.call()
    assert await result_of(parts.give, weft.Reducer.sum) == in_order(map(value_of, range(COUNT)))
    assert await result_of(parts.give, weft.Reducer.max) == max(map(value_of, range(COUNT)))
    large = await result_of(parts.give_large)
    assert np.array_equal(large, in_order(map(array_of, range(COUNT))))
    section = await result_of(parts[1::3].give_of_section)
    assert section == in_order(map(value_of, range(1, COUNT, 3)))


async def main():
    sums = {in_order(map(value_of, order)) for order in (range(COUNT), reversed(range(COUNT)))}
    assert len(sums) == 2, "the values show no order"
    parts = weft.Array(Part, COUNT)
    await check(parts)
    for index in range(0, COUNT, 2):
        parts[index].move()
    await weft.quiescence()
    await check(parts)
    members = weft.Group(Member)
    assert await result_of(members.give) == weft.num_pes()
    print("all checked")


weft.run(main)
