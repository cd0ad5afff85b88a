"""Arrays that travel in place as arguments and results, and where they land; checks itself.

The devices are emulated; with the argument `cuda` there are CUDA devices besides, without kernels.
"""

import gc
import pickle
import sys

import numpy as np
from refusing import refused

import weft

KINDS = ("host", "cuda:1", "emulated:0") if "cuda" in sys.argv else ("host", "emulated:0", "emulated:1")
DEVICE = KINDS[-1]


async def filled(data, kind=DEVICE):
    data = np.asarray(data)
    return await weft.DeviceArray(data.shape, data.dtype, kind).copy_from(data)


def negate(array):
    array *= -1


class Plain:
    def __init__(self, array):
        self.array = array


class Receiver(weft.Chare):
    """Without post entry methods: the runtime allocates."""

    def __init__(self, array=None):
        self.kept = []

    async def describe(self, *arrays, **named):
        arrays = [*arrays, *named.values()]
        return [
            (
                type(array).__name__,
                array.kind.partition(":")[0],
                array.shape,
                array.dtype,
                await array.to_host(),
            )
            for array in arrays
        ]

    async def mixed(self, number, pair, text, *, last):
        first, (second, label) = pair["first"], pair["second"]
        return number, text, label, [(await a.to_host()).tolist() for a in (first, second, last)]

    def keep(self, array):
        self.kept.append(array)

    async def sums(self):
        """What was kept, after later messages have had the chance to land in the same memory."""
        kept, self.kept = self.kept, []
        return [float((await array.to_host()).sum()) for array in kept]

    async def change_own_copy(self, array):
        """Writes what it got while the others still read theirs."""
        host = await array.to_host()
        await array.copy_from(np.full(array.shape, -1.0))
        await weft.sleep(0)
        again = await array.to_host()
        return array.kind.partition(":")[0], float(host.sum()), float(again.sum())

    def numpy_sum(self, array):
        assert type(array) is np.ndarray and array.flags.writeable
        return array.sum(), array.shape, array.flags.f_contiguous

    async def give_back(self, array, label):
        return {"array": array[1:], "label": label}

    async def use_on_device(self, array):
        await weft.emulated.launch(negate, array)
        return await array.to_host()

    def lend(self, array):
        """To another library, whose work on it comes before the memory is used again."""
        return array.__cuda_array_interface__["stream"], array.__dlpack__(stream=2) is not None

    def fresh(self, size):
        return np.arange(size)  # nobody else holds it

    def own(self, size):
        self.kept.append(np.zeros(size))
        return self.kept[-1]

    def change_own(self):
        self.kept.pop()[...] = -1

    def set_future(self, future, array):
        future.set([array, "set"])


class Poster(weft.Chare):
    """With post entry methods: the chare says where."""

    def __init__(self):
        self.halos = [weft.DeviceArray(8, float, DEVICE) for _ in range(2)]
        self.host = np.zeros(8)
        self.raw = np.zeros(64, np.uint8)
        self.seen = []
        self.alone = []

    @weft.post_entry("halo")
    def post_halo(self, halo, side):
        assert type(halo) is weft.ReceiveBuffer and side in (0, 1)
        self.seen.append((halo.shape, halo.dtype, halo.nbytes, halo.kind.partition(":")[0], repr(halo)))
        halo.into(self.halos[side])

    async def halo(self, halo, side):
        assert halo is self.halos[side]
        return (await halo.to_host()).tolist(), self.seen.pop()

    async def unposted(self, array):
        is_chosen = any(array is halo for halo in self.halos)
        return is_chosen, float((await array.to_host()).sum())

    @weft.post_entry("places")
    def post_places(self, arrays, into):
        self.late = arrays[0]
        for array, place in zip(arrays, into, strict=True):
            if place == "numpy":
                array.into(self.host)
            elif place == "part":
                array.into(self.halos[0][2:5])
            elif place == "bytes":
                array.into(memoryview(self.host)[5:])
            elif place == "raw":
                array.into(self.raw)

    async def places(self, arrays, into):
        refused("after the post entry method", self.late.into, self.host)
        values = []
        for array, place in zip(arrays, into, strict=True):
            assert (array is self.host) == (place == "numpy")
            assert (array is self.raw) == (place == "raw")
            if place == "raw":
                values.append(array.view(float).tolist())
                continue
            values.append(
                np.asarray(array).tolist()
                if place in ("numpy", "bytes")
                else (await array.to_host()).tolist()
                if isinstance(array, weft.DeviceArray)
                else array.tolist()
            )
        return values, self.host.tolist()

    @weft.post_entry("streamed")
    def post_streamed(self, array):
        self.stream = weft.Stream(DEVICE)
        self.target = weft.DeviceArray(array.shape, array.dtype, DEVICE)
        if "cuda" not in sys.argv:
            weft.emulated.launch(negate, self.target, stream=self.stream)
        array.into(self.target, stream=self.stream)

    async def streamed(self, array):
        return (await array.to_host()).tolist()

    @weft.post_entry("failing")
    def post_failing(self, array, how):
        if how == "raise":
            raise ZeroDivisionError("in the post entry method")
        if how == "read-only":
            array.into(b"bytes")
        if how == "number":
            array.into(5)

    def failing(self, array, how):
        raise AssertionError("the entry method of a post entry method that raised")

    @weft.post_entry("failing_alone")
    def post_failing_alone(self, array, index):
        if self.index == index:
            raise ZeroDivisionError("in the post entry method")

    def failing_alone(self, array, index):
        self.alone.append(index)

    def take_alone(self):
        alone, self.alone = self.alone, []
        return alone

    @weft.post_entry("waiting")
    async def post_waiting(self, array):
        await weft.sleep(0)

    def waiting(self, array):
        raise AssertionError("it cannot be")


class NoSuchEntry(weft.Chare):
    @weft.post_entry("missing")
    def post(self, array): ...


class TwoPosts(weft.Chare):
    @weft.post_entry("method")
    def one(self, array): ...

    @weft.post_entry("method")
    def _other(self, array): ...

    def method(self, array): ...


async def failure_of(awaitable):
    try:
        await awaitable
    except weft.Error as error:
        return f"{error}\n{getattr(error, 'traceback_text', '')}"
    raise AssertionError("it did not fail")


async def check_arguments(chare):
    for kind in KINDS:
        for size in (0, 1, 1000, 8192, 300_000):
            data = np.arange(size, dtype=np.float32)
            array = await filled(data, kind)
            (got,) = await chare.describe.call(array)
            assert got[:4] == ("DeviceArray", kind.partition(":")[0], (size,), np.float32), got[:4]
            assert np.array_equal(got[4], data)
    grid = np.arange(24).reshape(2, 3, 4)
    array = await filled(grid)
    got = await chare.describe.call(array, array[1], array[1][2], array[:0], named=array.reshape((4, 6)))
    assert [form[2] for form in got] == [(2, 3, 4), (3, 4), (4,), (0, 3, 4), (4, 6)]
    assert np.array_equal(got[0][4], grid) and np.array_equal(got[2][4], grid[1, 2])
    records = np.zeros(3, dtype=[("a", "i4"), ("b", "f8")])
    records["b"] = 1.5, 2.5, 3.5
    (got,) = await chare.describe.call(await filled(records))
    assert got[3] == records.dtype and np.array_equal(got[4], records)

    arrays = [await filled([float(i)] * 3, kind) for i, kind in enumerate(KINDS)]
    pair = {"first": arrays[0], "second": (arrays[1], "label")}
    got = await chare.mixed.call(5, pair, "text" * 100, last=arrays[2])
    assert got == (5, "text" * 100, "label", [[0.0] * 3, [1.0] * 3, [2.0] * 3])

    if "cuda" in sys.argv:
        for size in (1000, 1000, 1000, 300_000):
            assert await chare.lend.call(await filled(np.ones(size), "cuda:1")) == (None, True)
    else:
        got = await chare.use_on_device.call(await filled([1.0, 2.0]))
        assert got.tolist() == [-1.0, -2.0]


async def check_sending(chare):
    """A buffer may be overwritten when its sending was awaited, and dropped at once."""
    array = await filled(np.zeros(50_000), DEVICE)
    host = np.zeros(10)
    for i in range(4):
        await array.copy_from(np.full(50_000, float(i)))
        await chare.keep.send(array)
        host[...] = i
        await chare.keep(weft.nocopy(await filled(host, "host")))
    await array.copy_from(np.full(50_000, -1.0))
    host[...] = -1
    await weft.quiescence()
    assert sorted(await chare.sums.call()) == [0, 0, 10, 20, 30, 50_000, 100_000, 150_000]
    for i in range(4):
        chare.keep(await filled(np.full(50_000, float(i)), DEVICE))
        gc.collect()
    await weft.quiescence()
    assert sorted(await chare.sums.call()) == [0, 50_000, 100_000, 150_000]
    sending = chare.numpy_sum.send(np.zeros(2))  # copied at the call
    assert sending.done() and await sending is None
    stream = weft.Stream(DEVICE)
    if "cuda" not in sys.argv:
        array = await filled(np.ones(3))
        weft.emulated.launch(negate, array, stream=stream)
        await chare.keep.send(array.on(stream))
        await weft.quiescence()
        assert await chare.sums.call() == [-3.0]


async def check_nocopy(chare):
    for data in (np.ones(3), np.ones((200, 300)), np.asfortranarray(np.ones((3, 4))), np.zeros((0, 3))):
        total, shape, fortran = await chare.numpy_sum.call(weft.nocopy(data))
        assert (total, shape, fortran) == (data.sum(), data.shape, data.flags.f_contiguous)
    ((name, kind, shape, dtype, got),) = await chare.describe.call(weft.nocopy(b"bytes"))
    assert (name, kind, shape, dtype, bytes(got)) == ("DeviceArray", "host", (5,), np.uint8, b"bytes")
    refused("weft.pack(array)", chare.numpy_sum, weft.nocopy(np.ones(9)[::2]))
    refused("no buffer", weft.nocopy, 5)
    refused("tuple, list", pickle.dumps, weft.nocopy(np.ones(3)))
    refused("tuple, list", chare.keep, Plain(weft.nocopy(np.ones(3))))
    refused("argument of its own", chare.keep, Plain(await filled([1])))


async def check_results(chare):
    array = await filled(np.arange(5.0))
    got = await chare.give_back.call(array, "label")
    assert got["label"] == "label" and (await got["array"].to_host()).tolist() == [1.0, 2.0, 3.0, 4.0]
    for size in (10, 1_000_000):
        assert np.array_equal(await chare.fresh.call(size), np.arange(size))
        # What a chare keeps is copied when it returns it, so that it may go on changing it.
        call = chare.own.call(size)
        chare.change_own()
        assert not (await call).any()
    future = weft.Future()
    chare.set_future(future, array)
    got, word = await future
    assert word == "set" and (await got.to_host()).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


async def check_posts(chare):
    for kind in KINDS:
        array = await filled(np.arange(5.0), kind)
        for side in (0, 1):
            values, seen = await chare.halo.call(array, side=side)
            assert values[:5] == [0.0, 1.0, 2.0, 3.0, 4.0], values
            word = kind.partition(":")[0]
            text = f"<weft.ReceiveBuffer float64 of shape (5,) from {word}>"
            assert seen == ((5,), np.float64, 40, word, text)
    # A NumPy array of any size is on its way there too.
    values, seen = await chare.halo.call(np.full(3, 7.0), 1)
    assert values[:4] == [7.0, 7.0, 7.0, 3.0] and seen[3] == "host"
    # What does not fit is not torn, and elements do not become others; the chosen memory stays as it is.
    before, _ = await chare.halo.call(np.arange(8.0), 0)
    for array, words in (
        (np.arange(9.0), ["72 bytes", "float64 of shape (9,)", "64 bytes", "float64 of shape (8,)"]),
        (np.arange(20_000.0), ["160000 bytes", "64 bytes"]),
        (await filled(np.arange(9.0)), ["72 bytes", "64 bytes"]),
        (np.arange(3, dtype=np.int32), ["int32", "float64", "reinterpreted"]),
        (np.arange(3, dtype=np.int64), ["int64", "float64", "reinterpreted"]),
        (await filled(np.arange(3, dtype=np.float32)), ["float32", "float64", "reinterpreted"]),
        (weft.nocopy(b"12345678"), ["uint8", "float64", "reinterpreted"]),
    ):
        message = await failure_of(chare.halo.call(array, 0))
        assert all(word in message for word in ["ReceiveBuffer.into", "post_halo", *words]), message
    again, _ = await chare.halo.call(np.zeros(1), 0)
    assert again == [0.0, *before[1:]], again

    for first in (await filled([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])):
        values, host = await chare.places.call([first, first, first, first], ["numpy", "part", "", "bytes"])
        assert values[0][:3] == [1.0, 2.0, 3.0] and values[1:3] == [[1.0, 2.0, 3.0]] * 2, values
        assert host == [1.0, 2.0, 3.0, 0.0, 0.0, 1.0, 2.0, 3.0], host
        values, _ = await chare.places.call([first], ["raw"])  # plain bytes take every type
        assert values == [[1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0]], values
    assert await chare.streamed.call(await filled([4.0])) == [4.0]

    for how, words in (
        ("raise", ["ZeroDivisionError", "post_failing"]),
        ("read-only", ["read-only"]),
        ("number", ["no buffer"]),
    ):
        message = await failure_of(chare.failing.call(await filled([1]), how))
        assert all(word in message for word in words), message
    assert "cannot wait" in await failure_of(chare.waiting.call(np.zeros(3)))
    refused("post_halo is a post entry method", lambda: chare.post_halo, error=AttributeError)


async def copied_by_its_sender(values):
    """Memory that other PEs cannot map, so that none of them copies out of it."""
    weft.emulated.set_faults(refuse_exports=True)
    array = await filled(values)
    weft.emulated.set_faults()
    return array


async def check_faults(chare):
    array = await copied_by_its_sender(np.ones(5000))
    weft.emulated.set_faults(fail_copy=1)
    assert "fault injection" in await failure_of(chare.keep.send(array))
    weft.emulated.set_faults(fail_copy=1)
    assert "fault injection" in await failure_of(chare.describe.call(array))
    weft.emulated.set_faults(polls_per_copy=100_000)
    sending = chare.keep.send(array)
    assert await chare.numpy_sum.call(np.ones(3)) == (3.0, (3,), True)  # nothing waits for a slow device
    assert not sending.done()
    weft.emulated.set_faults()
    await sending
    del array
    gc.collect()
    await weft.quiescence()
    assert await chare.sums.call() == [5000.0]


async def check_faults_after_posting(poster):
    """What was chosen for a message that failed is not what a later one finds."""
    array = await copied_by_its_sender(np.arange(8.0))
    for _ in range(3):
        weft.emulated.set_faults(fail_copy=1)
        assert "fault injection" in await failure_of(poster.halo.send(array, 0))
        weft.emulated.set_faults()
        assert await poster.unposted.call(array) == (False, 28.0)


async def check_collections(receivers, posters):
    """Calls of whole collections: every chare gets its own."""
    count = len(receivers)
    for kind in KINDS:
        for size in (0, 1, 1000, 300_000):
            array = await filled(np.full(size, 0.5), kind)
            word = kind.partition(":")[0]
            for _ in range(2):
                results = await receivers.change_own_copy.call(array)
                assert results == [(word, size / 2, -float(size))] * count, results
    arrays = [await filled([float(i)] * 3, kind) for i, kind in enumerate(KINDS)]
    pair = {"first": arrays[0], "second": (arrays[1], "label")}
    results = await receivers.mixed.call(5, pair, "text" * 100, last=arrays[2])
    assert results == [(5, "text" * 100, "label", [[0.0] * 3, [1.0] * 3, [2.0] * 3])] * count

    # What was sent may be overwritten when that was awaited, and dropped at once.
    array, host = await filled(np.zeros(50_000)), np.zeros(10)
    for i in range(3):
        await array.copy_from(np.full(50_000, float(i)))
        assert await receivers.keep.send(array) is None
        host[...] = i
        await receivers.keep(weft.nocopy(await filled(host, "host")))
    await array.copy_from(np.full(50_000, -1.0))
    receivers.keep(await filled(np.full(50_000, 3.0)))
    gc.collect()
    await weft.quiescence()
    for sums in await receivers.sums.call():
        assert sorted(sums) == [0, 0, 10, 20, 50_000, 100_000, 150_000], sums

    for data in (np.ones(3), np.ones((200, 300)), np.asfortranarray(np.ones((3, 4))), np.zeros((0, 3))):
        for argument in (weft.nocopy(data), data):
            results = await receivers.numpy_sum.call(argument)
            assert results == [(data.sum(), data.shape, data.flags.f_contiguous)] * count
    large = np.ones(100_000)
    sums = receivers.numpy_sum.call(large)  # copied at the call
    sending = receivers.numpy_sum.send(large)
    assert sending.done()
    large[...] = 7
    assert [total for total, _, _ in await sums] == [100_000.0] * count

    for data in (await filled(np.arange(5.0)), await filled(np.arange(5.0), "host"), np.arange(5.0)):
        for side in (0, 1):
            for values, (shape, dtype, _, _, _) in await posters.halo.call(data, side=side):
                assert values[:5] == [0.0, 1.0, 2.0, 3.0, 4.0], values
                assert (shape, dtype) == ((5,), np.float64)
    last = len(posters) - 1
    message = await failure_of(posters.failing_alone.call(array, last))
    assert "ZeroDivisionError" in message and "post_failing_alone" in message, message
    await weft.quiescence()
    assert await posters.take_alone.call() == [[last]] * last + [[]]

    array = await copied_by_its_sender(np.arange(5.0))
    weft.emulated.set_faults(fail_copy=1)
    assert "fault injection" in await failure_of(receivers.keep.send(array))
    weft.emulated.set_faults(fail_copy=1)
    assert "fault injection" in await failure_of(receivers.describe.call(array))
    weft.emulated.set_faults()
    await weft.quiescence()
    await receivers.sums.call()


async def main():
    receivers, posters = weft.Array(Receiver, 4), weft.Array(Poster, 4)
    # Before the chares are there.
    data = np.arange(5.0)
    early = [poster.halo.call(await filled(data), 0) for poster in posters]
    early_everywhere = posters.halo.call(await filled(data), 1)
    for call in early:
        assert (await call)[0][:5] == data.tolist()
    assert all(values[:5] == data.tolist() for values, _ in await early_everywhere)
    for which in (0, 3):
        await check_arguments(receivers[which])
        await check_sending(receivers[which])
        await check_nocopy(receivers[which])
        await check_results(receivers[which])
        await check_posts(posters[which])
        await check_faults(receivers[which])
        await check_faults_after_posting(posters[which])
    for receiver, poster in ((receivers, posters), (weft.Array(Receiver, 1), weft.Group(Poster))):
        await check_collections(receiver, poster)
    array = await filled([1])
    refused("calls of entry methods", weft.Array, Receiver, 2, args=(array,))
    refused("constructors, reductions", weft.Array, Receiver, 2, args=(weft.nocopy(np.ones(3)),))
    message = await failure_of(receivers.give_back.call(await filled([1.0, 2.0]), "label"))
    assert "results that are gathered" in message, message
    refused("NoSuchEntry.post is the post entry method of missing", weft.Array, NoSuchEntry, 2)
    refused("two post entry methods", weft.Array, TwoPosts, 2)
    refused("name of an entry method", weft.post_entry, Receiver.keep, error=TypeError)
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
