"""charm4py.ray: remote functions and actors, keywords, futures as arguments, and failures."""

import threading

from charm4py import charm, ray


@ray.remote
def add(a, b=1):
    return a + b


@ray.remote
def fail(text):
    raise KeyError(text)


@ray.remote
class Counter:
    def __init__(self, first, step=1):
        self.count = first
        self.step = step

    def increment(self, times=1):
        self.count += times * self.step
        return self.count

    def where(self):
        return charm.myPe()


def error_of(future):
    try:
        ray.get(future)
    except Exception as error:
        return repr(error)
    raise AssertionError("no exception")


def main(args):
    ray.init()
    three = add.remote(1, 2)
    assert ray.get(add.remote(three, b=ray.put(4))) == 7
    assert ray.get([add.remote(i) for i in range(3)]) == [1, 2, 3]

    counters = [Counter.remote(10, step=5) for _ in range(2)]
    assert ray.get(counters[0].increment.remote()) == 15
    assert ray.get(counters[0].increment.remote(times=three)) == 30
    assert sorted(ray.get([counter.where.remote() for counter in counters])) == [0, 1]

    failed = fail.remote("first")
    assert "first" in error_of(failed)
    for later in (add.remote(failed), add.remote(1, b=failed), counters[1].increment.remote(failed)):
        assert "first" in error_of(later)
    assert "no_such" in error_of(add.remote(1, no_such=2))
    assert "lock" in error_of(counters[1].increment.remote(threading.Lock()))

    ready, others = ray.wait([three, failed], num_returns=2)
    assert set(ready) == {three, failed} and others == []
    print("remote passed")
    exit()


charm.start(main)
