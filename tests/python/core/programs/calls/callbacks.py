"""Entry methods as arguments; checks itself."""

import pickle

import weft

COUNT = 4


class Part(weft.Chare):
    def __init__(self):
        self.got = []

    def take(self, *arguments, **keywords):
        self.got.append((arguments, keywords))
        return arguments

    def taken(self):
        got, self.got = self.got, []
        return got

    def call_back(self, callback, *arguments):
        callback(*arguments, who=self.index)

    async def call_and_return(self, callbacks):
        return [await callback.call(i) for i, callback in enumerate(callbacks)]

    def contribute_to(self, target):
        self.contribute(self.index, weft.Reducer.sum, target)

    def echo(self, value):
        return value

    def hold(self, before, callback):
        """Whether the callback runs before what was queued earlier, by its priority."""
        for i in range(20):
            before(i)
        callback("first")


async def taken(parts):
    await weft.quiescence()
    return await parts.taken.call()


async def main():
    parts = weft.Array(Part, COUNT)
    others = weft.Group(Part)
    for callback, bound, reached in (
        (parts[1].take, (), [1]),
        (parts.take, (), range(COUNT)),
        (parts[COUNT - 1].take.bind("b", 2.5), ("b", 2.5), [COUNT - 1]),
        (parts.take.bind([1], others), ([1], others), range(COUNT)),
    ):
        others[weft.num_pes() - 1].call_back(callback, 7)
        expected = [((*bound, 7), {"who": weft.num_pes() - 1})]
        for index, got in enumerate(await taken(parts)):
            assert got == (expected if index in reached else []), (callback, index, got)
        others.contribute_to(callback)
        for index, got in enumerate(await taken(parts)):
            result = sum(range(weft.num_pes()))
            assert got == ([((*bound, result), {})] if index in reached else []), (callback, index, got)
        # In containers, and on the way back.
        for back in await others.echo.call({"callback": [callback]}):
            assert back["callback"][0] == callback and hash(back["callback"][0]) == hash(callback)
            assert repr(back["callback"][0]) == repr(callback)

    results = await others[0].call_and_return.call([parts[i].take.bind(10 * i) for i in range(COUNT)])
    assert results == [(10 * i, i) for i in range(COUNT)]
    await taken(parts)

    # The priority of the proxy travels too.
    urgent = parts[0].with_priority(-5).take
    parts[0].hold(parts[0].take, urgent)
    assert (await taken(parts))[0][0] == (("first",), {})

    assert parts[0].take == parts[0].take and parts[0].take != parts[1].take
    assert parts.take != parts[0].take and parts[0].take != parts[0].echo
    assert parts[0].take.bind(1) == parts[0].take.bind(1) != parts[0].take.bind(2)
    assert parts[0].take != 5

    for damaged in (
        (b"", "take", 0, None),
        (b"\x00", "take", 0, None),
        ("text", "take", 0, None),
        (pickle.dumps(1), "take", 0, None),
    ):
        try:
            weft._core._entry_method_at(*damaged)
        except (weft.Error, AttributeError):
            continue
        raise AssertionError(damaged)
    proxy, name, _, _ = parts[0].take.__reduce__()[1]
    for wrong in (
        (proxy, "nothing", 0, None),
        (proxy, "take", 256, b""),
        (proxy, "take", -1, b""),
        (proxy, "take", 1, None),
    ):
        try:
            weft._core._entry_method_at(*wrong)
        except (weft.Error, AttributeError):
            continue
        raise AssertionError(wrong)
    assert weft._core._entry_method_at(proxy, name, 0, None) == parts[0].take
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
