"""A future gets the value that was set, on whichever PE it is set; checks itself."""

import threading

import numpy as np
from refusing import refused

import weft


class Plain:
    def __init__(self, items):
        self.items = items


class Setter(weft.Chare):
    def __init__(self):
        self.small, self.large, self.list = np.zeros(4), np.zeros(100_000), [0]
        self.plain = Plain(self.list)

    def everything(self):
        return [
            self.small,
            self.large,
            self.list,
            {"list": self.list, "array": self.small},
            (self.list, self.small),
            self.plain,
            memoryview(self.small),
        ]

    def fill(self, number, futures, collecting):
        self.small[:] = self.large[:] = number
        self.list[0] = number
        for future, value in zip(futures, self.everything(), strict=True):
            future.set(value)
        collecting.set(self.list)
        self.small[:] = self.large[:] = self.list[0] = -1

    async def give(self, number):
        self.small[:] = self.list[0] = number
        return self.small, self.list

    def give_to(self, number, future):
        self.list[0] = number
        self.contribute(self.list, weft.Reducer.gather, future)
        self.list[0] = -1

    def state(self):
        return float(self.small[0]), float(self.large[0]), self.list

    def linked(self, future):
        loop = [self.list, self.list]
        loop.append(loop)
        future.set(loop)


def numbers(values):
    small, large, plain_list, both, pair, plain, view = values
    found = [small[0], large[-1], plain_list[0], both["list"][0], both["array"][3], pair[0][0], pair[1][0]]
    return [*map(float, found), float(plain.items[0]), float(view[0])]


async def on(pe):
    setter = weft.Singleton(Setter, pe)
    collecting = weft.Future(2)
    rounds = []
    for number in (1, 2):
        futures = [weft.Future() for _ in range(7)]
        await setter.fill.call(number, futures, collecting)
        rounds.append([await future for future in futures])
    assert [numbers(values) for values in rounds] == [[1.0] * 9, [2.0] * 9]
    assert await collecting == [[1], [2]]
    small, large, own_list, both, *_ = rounds[1]
    small[:] = large[:] = both["array"][:] = own_list[0] = both["list"][0] = 99
    assert await setter.state.call() == (-1.0, -1.0, [-1])
    results = [await setter.give.call(number) for number in (1, 2)]
    assert [(float(array[0]), values) for array, values in results] == [(1.0, [1]), (2.0, [2])]
    gathered = weft.Future()
    setter.give_to(5, gathered)
    (first,) = await gathered
    first.append("x")
    assert await setter.state.call() == (2.0, -1.0, [-1])
    linked = weft.Future()
    setter.linked(linked)
    loop = await linked
    assert loop[0] is loop[1] and loop[2] is loop


async def here():
    """What stays the object itself on the future's own PE."""
    array = np.arange(3)
    names = weft.Singleton(Setter), weft.Future(), weft.DeviceArray(3, float, "emulated:0"), np.float64(2)
    for value, expected in ((weft.nocopy(array), array), *((name, name) for name in names)):
        future = weft.Future()
        future.set(value)
        found = await future
        assert found is expected, found
        inside = weft.Future()
        inside.set([value, {"again": value}])
        first, again = await inside
        assert first is expected and again["again"] is expected
    future = weft.Future()
    future.set([array, array])
    first, second = await future
    assert first is second and first is not array and np.array_equal(first, array)
    lock = threading.Lock()
    refused("the value of a future cannot be sent", weft.Future().set, lock)
    refused("did you forget `await`?", weft.Future().set, [Setter.give(None, 1)])
    # Two awaits of a future give the same object.
    future = weft.Future()
    future.set([1])
    assert await future is await future


async def main():
    for pe in range(weft.num_pes()):
        await on(pe)
    await here()
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
