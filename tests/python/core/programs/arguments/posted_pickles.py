"""Pickled arguments of a call with a post entry method: they are in the message, of any size."""

import numpy as np

import weft

SIZES = [
    (32 << 10) - 8,
    32 << 10,
    1 << 20,
]  # from 32 KiB on, buffers of other calls travel out of band


class Box:
    """Travels by pickle, its array out of band."""

    def __init__(self, array):
        self.array = array


class Marked(np.ndarray):
    pass


def pattern(size_bytes):
    return np.arange(size_bytes // 8, dtype=np.int64)


def structured(array):
    return array.view([("a", "i4"), ("b", "i4")])


def masked(array):
    return np.ma.masked_array(array, mask=False)


def marked(array):
    return array.view(Marked)


def numbers_of(value):
    return np.asarray(value.array if isinstance(value, Box) else value).view(np.int64)


class Taker(weft.Chare):
    def __init__(self):
        self.room = np.zeros(9)
        self.posted = None

    @weft.post_entry("take")
    def post_take(self, value, array, *, more):
        assert type(array) is weft.ReceiveBuffer
        array.into(self.room)
        self.posted = [numbers_of(each).copy() for each in (value, *more)]

    def take(self, value, array, *, more):
        assert array is self.room
        types = []
        for each, posted in zip((value, *more), self.posted, strict=True):
            assert np.array_equal(numbers_of(each), posted)
            types.append(type(each).__name__)
        return types, [(len(posted), int(posted.sum())) for posted in self.posted], float(array.sum())


FORMS = [Box, structured, masked, marked]


def call(taker, form, size):
    array = pattern(size)
    value = form(array)
    called = taker.take.call(value, np.ones(9), more=[value, form(pattern(size))])
    array[:] = -1  # at once: the call has its own copy
    return called


def expected(form, size):
    array = pattern(size)
    return [type(form(array)).__name__] * 3, [(len(array), int(array.sum()))] * 3, 9.0


async def main():
    takers = weft.Array(Taker, 3)
    cases = [(taker, form, size) for taker in [*takers] for form in FORMS for size in SIZES]
    # Before the chares are there.
    early = [call(*case) for case in cases]
    for called, (taker, form, size) in zip(early, cases, strict=True):
        assert await called == expected(form, size), (taker, form, size)
    for taker, form, size in cases:
        assert await call(taker, form, size) == expected(form, size), (taker, form, size)
    for form in FORMS:
        assert await call(takers, form, SIZES[-1]) == [expected(form, SIZES[-1])] * len(takers)
    print("all checked")


weft.run(main)
