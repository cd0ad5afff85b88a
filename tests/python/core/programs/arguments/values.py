"""What travels as an argument and comes back the same, of any size; checks itself."""

import collections
import enum

import numpy as np
from refusing import refused

import weft


class Colour(enum.IntEnum):
    RED = 1


Point = collections.namedtuple("Point", "x y")


class Plain:
    def __init__(self, array):
        self.array = array


class Echo(weft.Chare):
    def __init__(self):
        self.arrays = []

    def echo(self, value):
        return value

    def write_and_return(self, array):
        array[...] = 7  # arrives writable, and as the receiver's own
        return array

    def keep(self, value):
        array = value.array if isinstance(value, Plain) else value
        assert array.flags.writeable
        self.arrays.append(array)

    def kept(self):
        sums = [float(array.sum()) for array in self.arrays]
        self.arrays.clear()
        return sums

    def total(self, *arrays):
        return [float(array.sum()) for array in arrays]


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    return type(a) is type(b) and a == b


VALUES = [
    None,
    True,
    0,
    -129,
    2**62,
    2**200,
    1.5,
    float("inf"),
    3 + 4j,
    "",
    "käse \U0001f9c0" * 100,
    b"",
    b"x" * 300,
    (),
    (1, (2, [3, {"four": 5}])),
    {1: "a", (2, 3): [None]},
    {1, 2},
    Colour.RED,
    Point(1, 2),
    np.float64(2.5),
    np.int16(-3),
    np.bool_(True),
    np.complex64(1j),
    range(5),
    collections.OrderedDict(a=1),
]

GRID = np.arange(240.0).reshape(4, 6, 10)
ARRAYS = [
    np.zeros(0),
    np.zeros((3, 0, 2), dtype=np.int8),
    np.array(5.5),
    np.arange(12, dtype=np.float32).reshape(3, 4),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    GRID[::2],  # charm4py sends these wrong
    GRID[:, ::-1, 1::3],
    GRID.T,
    GRID[1:3, 2],
    np.broadcast_to(np.arange(3.0), (4, 3)),
    np.array([True, False]),
    np.array([1, 2, 3], dtype=">i4"),
    np.array(["text", "longer text"]),
    np.array([None, {"a": 1}], dtype=object),
    np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    np.array(["2026-11-20"], dtype="datetime64[D]"),
    np.arange(1_000_000, dtype=np.float64),
    np.arange(3_000_000, dtype=np.int16)[::3],
]


# Copied into the message, and beside it; a call of the collection takes both ways too.
BYTES = [bytes(range(256)) * n for n in (1, 8, 9, 255, 256, 257, 5000)]
VIEWS = [
    memoryview(b""),
    memoryview(b"abc"),
    memoryview(bytearray(range(250))).cast("B", (5, 50)),
    memoryview(np.arange(6.0).reshape(2, 3)),
    memoryview(np.arange(100_000, dtype=np.int16)),
    memoryview(np.array(5.5)),
]


async def check_bytes(echo):
    for value in BYTES:
        assert await echo.echo.call(value) == [value] * 2
        assert await echo[1].echo.call([value, {"again": value}]) == [value, {"again": value}]
    for view in VIEWS:
        for back in [await echo[1].echo.call(view), *await echo.echo.call(view)]:
            assert type(back) is memoryview and not back.readonly
            assert back.tobytes() == view.tobytes()
            assert not view.nbytes or (back.format, back.shape) == (view.format, view.shape)
    changed = bytearray(b"before")
    call = echo[1].echo.call(memoryview(changed))
    changed[:] = b"behind"
    assert (await call).tobytes() == b"before"
    refused("view.tobytes()", echo[1].echo, memoryview(bytes(10))[::2])
    refused("view.tobytes()", echo[1].echo, memoryview(np.zeros(2, [("a", "i4")])))
    released = memoryview(bytearray(1 << 20))
    released.release()
    refused("released memoryview", echo[1].echo, released)


async def main():
    echo = weft.Array(Echo, 2)
    await check_bytes(echo)
    for target in echo:
        for value in VALUES + ARRAYS:
            back = await target.echo.call(value)
            assert same(value, back), f"{value!r} came back as {back!r}"
        for array in (np.zeros(3), np.zeros(100_000), np.broadcast_to(0.0, 5)):
            back = await target.write_and_return.call(array)
            assert (
                (back == 7).all()
                and (array == 0).all()
                and back.flags.writeable
                and back.flags.owndata is not None
            )
        plain = await target.echo.call(Plain(np.arange(100_000)))
        assert np.array_equal(plain.array, np.arange(100_000)) and plain.array.flags.writeable
        deep = []
        for _ in range(200):
            deep = [deep]
        assert await target.echo.call(deep) == deep
        loop = []
        loop.append(loop)
        back = await target.echo.call(loop)
        assert back[0] is back or back[0][0] is back[0] or len(back) == 1
        sizes = [1, 1000, 4096, 8192, 65_536, 1_000_000]
        arrays = [np.ones(size, dtype=np.uint8) for size in sizes]
        assert await target.total.call(*arrays) == sizes
        # An array of any size may be changed when the call has returned.
        for size in (1000, 8191, 8192, 500_000):
            reused = np.zeros(size)
            for i in range(4):
                reused[...] = i
                target.keep(reused)
            reused[...] = -1
            await weft.quiescence()
            assert sorted(await target.kept.call()) == [i * float(size) for i in range(4)]
        # One that nobody holds any more is kept until it has gone out.
        for i in range(4):
            target.keep(np.full(300_000, float(i)))
        target.keep(Plain(np.full(100_000, 4.0)))
        await weft.quiescence()
        assert sorted(await target.kept.call()) == [0.0, 300_000.0, 400_000.0, 600_000.0, 900_000.0]
    everywhere = await echo.total.call(np.ones(300_000))
    assert everywhere == [[300_000.0]] * 2
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
