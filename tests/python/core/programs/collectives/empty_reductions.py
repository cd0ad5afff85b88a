"""Reductions without a value, to all kinds of targets, from methods and constructors; checks itself.

With the argument "mixed" some elements contribute a value, which ends the job.
"""

import sys

import weft

COUNT = 7


class Part(weft.Chare):
    def __init__(self, built=None, hears=False):
        self.calls = []
        if built is not None:
            self.contribute(target=built)
        if hears:
            self.contribute(target=self.proxy.all_here)

    def give(self, form, target):
        if form == "keyword":
            self.contribute(target=target)
        elif form == "positions":
            self.contribute(None, None, target)
        else:
            self.contribute(value=None, reducer=None, target=target)

    def give_to_methods(self):
        self.contribute(target=self.proxy[2].one_here)
        self.contribute(target=self.proxy.all_here)

    def one_here(self, *arguments):
        self.calls.append(("one", arguments))

    def all_here(self, *arguments):
        self.calls.append(("all", arguments))

    def take_calls(self):
        calls, self.calls = self.calls, []
        return calls

    async def in_steps(self, log):
        """A barrier: behind it, all elements have arrived."""
        for step in range(3):
            await log.arrive.call(step)
            assert await self.allreduce() is None
            assert await log.num_arrived.call(step) == COUNT
        assert await self.allreduce(None, None) is None
        return self.index

    def mixed(self, target):
        if self.index == 0:
            self.contribute(1, weft.Reducer.sum, target)
        else:
            self.contribute(target=target)

    def refused(self):
        texts = []
        for call in (
            lambda: self.contribute(5, None, weft.Future()),
            lambda: self.contribute(value=[1], target=weft.Future()),
            lambda: self.allreduce(5),
        ):
            try:
                call()
            except weft.Error as error:
                texts.append(str(error))
        try:
            self.contribute(1, weft.Reducer.sum)
        except TypeError as error:
            texts.append(str(error))
        return texts


class EarlyAndLate(weft.Chare):
    """Elements of one PE contribute in their constructors, the others in a method."""

    def __init__(self, first, count, done):
        self.early = first <= self.index < first + count
        if self.early:
            self.sum = self.allreduce(self.index, weft.Reducer.sum)
            self.contribute(target=done)

    async def rest(self, done):
        if not self.early:
            self.sum = self.allreduce(self.index, weft.Reducer.sum)
            self.contribute(target=done)
        return await self.sum


class Log(weft.Chare):
    def __init__(self):
        self.steps = []

    def arrive(self, step):
        self.steps.append(step)

    def num_arrived(self, step):
        return self.steps.count(step)


async def main():
    parts = weft.Array(Part, COUNT)
    for form in ("keyword", "positions", "keywords"):
        target = weft.Future()
        parts.give(form, target)
        assert await target is None

    parts.give_to_methods()
    await weft.quiescence()
    for index, calls in enumerate(await parts.take_calls.call()):
        one = [("one", ())] if index == 2 else []
        assert sorted(calls) == sorted([*one, ("all", ())]), (index, calls)

    assert await parts.in_steps.call(weft.Singleton(Log)) == list(range(COUNT))

    for texts in await parts.refused.call():
        assert "a value (int) is contributed without a reducer" in texts[0], texts
        assert "a value (list) is contributed without a reducer" in texts[1], texts
        assert "a value (int) is contributed without a reducer" in texts[2], texts
        assert "Chare.contribute needs the argument 'target'" in texts[3], texts
    # What was refused has not taken part.
    target = weft.Future()
    parts.give("keyword", target)
    assert await target is None

    for make in (lambda *args: weft.Array(Part, COUNT, args=args), lambda *args: weft.Group(Part, args=args)):
        built = weft.Future()
        made = make(built)
        assert await built is None
        made = make(None, True)
        await weft.quiescence()
        assert await made.take_calls.call() == [[("all", ())]] * len(made)

    for first in range(COUNT):
        for count in (1, 3, COUNT):
            done = weft.Future()
            mixed = weft.Array(EarlyAndLate, COUNT, args=(first, count, done))
            assert await mixed.rest.call(done) == [sum(range(COUNT))] * COUNT, (first, count)
            assert await done is None
    return "all checked"


async def mixed():
    target = weft.Future()
    weft.Array(Part, COUNT).mixed(target)
    await target


result = weft.run(mixed if "mixed" in sys.argv else main)
if result is not None:
    print(result)
