"""Values of Python and NumPy that GlobalArray.put converts, and those that it refuses, in host memory."""

import datetime
import decimal
import enum
import fractions

import numpy as np

import weft
import weft.pgas as pgas

RECORD = np.dtype([("number", "i4"), ("name", "S2"), ("place", "f4", (2,)), ("inner", [("low", "u1")])])


class Colour(enum.IntEnum):
    RED = 3


# For each type: values for a part of two elements, and what is there then.
HELD = {
    "i8": [
        ([1, 2], [1, 2]),
        ([True, 2], [1, 2]),
        (np.int32(3), [3, 3]),
        (np.uint64(3), [3, 3]),
        (np.bool_(True), [1, 1]),
        (Colour.RED, [3, 3]),
        ([Colour.RED, np.int16(-4)], [3, -4]),
        ([np.uint64(2**63 - 1), 0], [2**63 - 1, 0]),
        ((5, 6), [5, 6]),
        ([-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    ],
    "u8": [([2**64 - 1, 0], [2**64 - 1, 0])],
    ">i4": [(np.int32(7), [7, 7]), (7, [7, 7]), ([7, -8], [7, -8])],
    "?": [([1, 0], [True, False]), ([True, False], [True, False])],
    "f4": [
        ([0.1, 2], [np.float32(0.1), 2]),
        (np.float64(0.1), [np.float32(0.1)] * 2),
        ([float("inf"), 2**24], [np.inf, 2**24]),
        (np.int64(-5), [-5, -5]),
    ],
    "f8": [([2**70, 1.5], [2.0**70, 1.5]), ([2**70, 1], [2.0**70, 1]), ([2**53, -1], [2.0**53, -1])],
    "c8": [([1, 2.5j], [1, 2.5j]), (np.float32(1.5), [1.5, 1.5])],
    "S2": [
        (["ab", "c"], [b"ab", b"c"]),
        ([b"ab", b""], [b"ab", b""]),
        ("x", [b"x"] * 2),
        (np.str_("y"), [b"y"] * 2),
    ],
    "U2": [(["äb", "c"], ["äb", "c"]), ([b"ab", b"c"], ["ab", "c"])],
    "M8[s]": [
        (np.datetime64("2024-05-06"), [np.datetime64("2024-05-06", "s")] * 2),
        (
            [datetime.datetime(2024, 5, 6), "2024-05-07"],
            list(np.array(["2024-05-06", "2024-05-07"], "M8[s]")),
        ),
    ],
    "m8[ms]": [([np.timedelta64(3, "s"), np.timedelta64(1, "m")], list(np.array([3000, 60000], "m8[ms]")))],
    RECORD: [
        (
            [(1, "ab", (0.5, 1), (255,)), (2, b"c", [2, 3], (0,))],
            list(np.array([(1, "ab", (0.5, 1), (255,)), (2, "c", (2, 3), (0,))], RECORD)),
        ),
        ((4, "x", (0, 0), (1,)), list(np.array([(4, "x", (0, 0), (1,))] * 2, RECORD))),
        (np.array([(5, "y", (0, 0), (1,))], RECORD)[0], list(np.array([(5, "y", (0, 0), (1,))] * 2, RECORD))),
    ],
}

LOST = {
    "i8": [
        [1.0, 2],
        1.5,
        np.float64(3),
        [2**70, 1],
        [2**63, 0],
        [fractions.Fraction(3, 2), 1],
        [decimal.Decimal(1), 1],
        ["5", "6"],
        [None, 1],
        [[1], [2, 3]],
        [np.datetime64("2024-05-06"), np.datetime64("2024-05-07")],
        1j,
        {},
        {1, 2},
    ],
    "i4": [[decimal.Decimal("1.7"), 2], 2**31, [2**31, 0], np.int64(-(2**31) - 1), np.uint32(2**31)],
    "u1": [-1, [256, 0], np.int8(-1)],
    "?": [2, [2, 0], 0.0],
    "f4": [
        [1e300, 1],
        1e300,
        [2**24 + 1, 1],
        2**24 + 1,
        np.float64(-1e300),
        np.int64(2**24 + 1),
        ["1.5", "2"],
        1j,
    ],
    "f8": [[2**53 + 1, 1], 2**53 + 1, 10**400, [10**400, 1.5], [decimal.Decimal("0.1"), 1]],
    "f2": [1e300, 70000, [70000, 1]],
    ">f4": [1e300, 2**24 + 1],
    "c8": [2**24 + 1, [1e300j, 1], ["1", "2"]],
    "S2": [["abc", "d"], "abcdef", b"abcdef", np.bytes_(b"abc"), ["é", "d"], [1, 2], 5],
    "U2": [["abc", "d"], "abc", [1.5, 2]],
    "M8[s]": [[1, 2], ["2024-05-06T00:00:00.5", "2024-05-06"], np.timedelta64(1, "s"), "no date"],
    RECORD: [
        (1.5, "ab", (0, 0), (0,)),
        (1, "abc", (0, 0), (0,)),
        (1, "ab", (1e300, 0), (0,)),
        (1, "ab", (0, 0), (256,)),
        (1, "ab", (0, 0, 0), (0,)),
        (1, "ab", 0, (0,)),
        (1, "ab"),
        [[1, "ab", (0, 0), (0,)]],
        [[(1, "ab", (0, 0), (0,))], []],
        5,
        "ab",
    ],
}


async def is_refused(array: pgas.GlobalArray, key: object, values: object) -> bool:
    try:
        await array.put(key, values)
    except weft.Error:
        return True
    return False


async def main(world: pgas.Team) -> None:
    for dtype in {**HELD, **LOST}:
        array = await pgas.make_array(2 * world.size + 2, dtype)
        await world.barrier()
        if world.rank == 0:
            part = slice(-2, None)  # of the last rank
            for values, expected in HELD.get(dtype, ()):
                await array.put(part, values)
                got = await array.get(part)
                assert got.tobytes() == np.array(expected, dtype).tobytes(), (dtype, values, got)
                if not isinstance(values, list | tuple):
                    await array.put(part, np.zeros(2, dtype))
                    await array.put(-1, values)  # one element
                    assert (await array.get(part))[1:].tobytes() == got[1:].tobytes(), (dtype, values)
            before = (await array.get()).tobytes()
            for values in LOST.get(dtype, ()):
                assert await is_refused(array, part, values), (dtype, values)
                if not isinstance(values, list):
                    assert await is_refused(array, -1, values), (dtype, values)
            assert (await array.get()).tobytes() == before, "something was written"
            # What was read goes back, also in a byte order that is not the machine's.
            await array.put(0, await array.get(0))
            await array.put(slice(0, 0), [])
        await world.barrier()
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
