"""weft.Pool: pool.py MODE; checks itself."""

import functools
import gc
import math
import operator
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refused

import weft

settings.register_profile("weft", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("weft")

LONG_TASK_SEES = 50


def square(x):
    return x * x


def add(a, b=0, *, c=0):
    return a + b + c


def busy(seconds):
    """Keeps its PE, as a computation does, but no core: there may be fewer cores than PEs."""
    time.sleep(seconds)
    return weft.my_pe()


def note(file, is_long):
    """A short task adds a byte to the file. A long one keeps its PE until LONG_TASK_SEES bytes are there."""
    end = time.monotonic() + 30
    while is_long and file.stat().st_size < LONG_TASK_SEES:
        assert time.monotonic() < end, "the other PEs do not get the short tasks"
        time.sleep(0.001)
    if not is_long:
        with file.open("ab", buffering=0) as opened:
            opened.write(b".")
    return weft.my_pe()


def fail_at(bad, x):
    if x in bad:
        raise ValueError(f"no {x}")
    return x


def own_class(error):
    raise error


def double_array(array):
    array *= 2  # its own: arguments are values
    return array


def lambda_result(x):
    return (lambda: x) if x == 3 else x


def cube(x):
    return x**3


async def wait_and_square(x):
    await weft.sleep(0.001)
    return x * x


async def wait_and_fail(x):
    await weft.sleep(0.001)
    raise KeyError(x)


class NotOfWeft:
    def __await__(self):
        yield self


async def await_wrongly(x):
    await NotOfWeft()


async def fibonacci(pool, n):
    if n < 2:
        return n
    return sum(await pool.starmap(fibonacci, [(pool, n - 1), (pool, n - 2)]))


async def nested_in_every_way(pool, n):
    first = pool.submit(square, n)
    streamed = [x async for x in pool.imap(square, range(n), 1)]
    return await first, streamed, await pool.map(wait_and_square, range(n))


async def nested_failure(pool, n):
    return await pool.map(functools.partial(fail_at, (n,)), range(10))


async def close_copy(pool):
    await pool.close()


class User(weft.Chare):
    """Uses a pool that another PE has made, and one of its own."""

    async def use(self, pool):
        squares = await pool.map(square, range(200))
        async with weft.Pool() as own:
            return squares, await own.map(square, range(20)), await nested_in_every_way(pool, 3)

    async def fail_to_use(self, pool):
        return [str(await error_of(pool.map(square, [1]))), str(await error_of(pool.submit(square, 1)))]


class Slow:
    """Fails to arrive."""

    def __reduce__(self):
        return own_class, (RuntimeError("does not unpickle"),)


async def error_of(awaitable):
    try:
        await awaitable
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


async def results():
    async with weft.Pool() as pool:
        assert pool.pes == tuple(range(weft.num_pes()))
        for items in (range(1000), list(range(7)), [], "text", {3, 4}):
            items = list(items)
            expected = [x * 2 for x in items]
            assert await pool.map(functools.partial(operator.mul, 2), items) == expected, items
            assert await pool.map(functools.partial(operator.mul, 2), iter(items)) == expected, items
        assert await pool.map(square, (x for x in range(300))) == [x * x for x in range(300)]
        assert await pool.map(square, iter(())) == []
        assert await pool.map(math.sqrt, [4, 9]) == [2.0, 3.0]
        assert await pool.map(np.sqrt, [4, 9]) == [2.0, 3.0]
        assert await pool.map(int, "123", chunksize=2) == [1, 2, 3]
        assert await pool.starmap(add, [(1,), (1, 2)]) == [1, 3]
        assert await pool.submit(add, 1, 2, c=3) == 6
        assert await pool.submit(wait_and_square, 4) == 16
        assert await pool.map(wait_and_square, range(30)) == [x * x for x in range(30)]
        futures = [pool.map_async(square, range(i)) for i in range(4)] + [
            pool.submit(add, i) for i in range(40)
        ]
        expected = [[x * x for x in range(i)] for i in range(4)] + list(range(40))
        assert await weft.gather(*futures) == expected
        assert await weft.wait(futures) == (futures, [])
        assert len([future async for future in weft.as_completed(futures)]) == len(futures)
        arrays = [np.full(n, n, float) for n in (0, 3, 50_000)]
        doubled = await pool.map(double_array, arrays)
        assert all(np.array_equal(a * 2, b) and a is not b for a, b in zip(arrays, doubled, strict=True))
        # The values of a submitted task are those of the call, also if it has to wait for its turn.
        array = np.ones(8)
        waiting = [pool.submit(busy, 0.02) for _ in range(4 * weft.num_pes())] + [
            pool.submit(double_array, array)
        ]
        array[:] = 5
        assert (await weft.gather(*waiting))[-1].tolist() == [2.0] * 8
        assert await pool.submit(double_array, weft.nocopy(np.ones(5000))) is not None
        users = weft.Array(User, 4)
        for squares, own, (first, streamed, waited) in await users.use.call(pool):
            assert squares == [x * x for x in range(200)]
            assert own == squares[:20]
            assert (first, streamed, waited) == (9, [0, 1, 4], [0, 1, 4])


async def equals_map():
    """For any items, chunksize and PEs it gives what the built-in map gives."""
    examples = []

    @given(
        st.lists(st.one_of(st.integers(), st.text(max_size=3), st.floats(allow_nan=False))),
        st.one_of(st.none(), st.integers(1, 12)),
        st.sets(st.integers(0, weft.num_pes() - 1), min_size=1),
        st.booleans(),
    )
    def collect(items, chunksize, pes, is_sized):
        examples.append((items, chunksize, pes, is_sized))

    collect()
    pools = {}
    for items, chunksize, pes, is_sized in examples:
        key = frozenset(pes)
        pool = pools.get(key) or pools.setdefault(key, weft.Pool(pes))
        expected = list(map(repr, items))
        given_items = items if is_sized else iter(items)
        assert await pool.map(repr, given_items, chunksize) == expected, (items, chunksize, pes)
        assert [x async for x in pool.imap(repr, items, chunksize)] == expected, (items, chunksize, pes)
        unordered = [x async for x in pool.imap_unordered(repr, items, chunksize)]
        assert sorted(unordered) == sorted(expected), (items, chunksize, pes)
    assert len(examples) > 30
    await weft.gather(*[pool.close() for pool in pools.values()])


async def balance():
    async with weft.Pool() as pool:
        num_pes = weft.num_pes()
        # A long task does not hold up the others: each PE that has time gets more of them.
        if num_pes > 1:
            with tempfile.NamedTemporaryFile() as file:
                tasks = [True] + [False] * (LONG_TASK_SEES + 10)
                by_pe = await pool.map(functools.partial(note, Path(file.name)), tasks, chunksize=1)
            long_pe = by_pe[0]
            others = [by_pe.count(pe) for pe in range(num_pes) if pe != long_pe]
            assert by_pe.count(long_pe) < max(others), by_pe
            # PE 0 takes tasks again a turn after its last one, which may be the last of the map.
            await weft.quiescence()
            assert sorted(set(await pool.map(busy, [0.1] * num_pes))) == list(range(num_pes))
        # A generator is consumed as its items are sent, not ahead of them.
        taken = []

        def items():
            for i in range(100_000):
                taken.append(i)
                yield i

        most = 0
        count = 0
        async for x in pool.imap(square, items(), chunksize=10):
            assert x == count * count
            count += 1
            most = max(most, len(taken) - count)
            if count == 5000:
                break
        assert count == 5000 and most <= 10 * 10 * num_pes, most
        gc.collect()
        await weft.quiescence()
        assert len(taken) < 20_000, len(taken)
        remaining = weft.Pool([0])
        assert set(await remaining.map(busy, [0] * 20)) == {0}
        await remaining.close()
        others = weft.Pool(range(1, num_pes)) if num_pes > 1 else weft.Pool()
        assert 0 not in set(await others.map(busy, [0.001] * 20)) or num_pes == 1
        await others.close()


async def failures():
    async with weft.Pool() as pool:
        error = await error_of(pool.map(functools.partial(fail_at, (17, 60)), range(100), 7))
        assert isinstance(error, weft.RemoteError), error
        assert (error.type_name, error.message) == ("ValueError", "no 17"), error
        assert isinstance(error, ValueError) and str(error) == "no 17", repr(error)
        told = error.traceback_text
        assert "in fail_at" in told and "_pool" not in told, told
        assert "in task 17 of map(partial) on PE " in told and "argument is 17" in told, told
        # What had not been sent is not run, and nothing runs when the exception is there.
        taken = []
        error = await error_of(pool.map(fail_on_first, (taken.append(i) or i for i in range(100_000)), 1))
        assert error.type_name == "ZeroDivisionError", error
        count = len(taken)
        assert count < 50_000, count
        await weft.quiescence()
        assert len(taken) == count
        error = await error_of(pool.map(wait_and_fail, [5]))
        assert error.type_name == "KeyError" and "task 0 of map(wait_and_fail)" in error.traceback_text, error
        error = await error_of(pool.submit(add, 1, "2"))
        assert error.type_name == "TypeError" and "of submit(add)" in error.traceback_text, error
        error = await error_of(pool.map(await_wrongly, [5]))
        assert "entry method awaited a" in error.message, error
        error = await error_of(pool.map(lambda_result, range(8), 8))
        assert (
            "cannot be sent" in error.message and "tasks 0 to 7 of map(lambda_result)" in error.traceback_text
        ), error
        error = await error_of(pool.map(square, [lambda: 1]))
        assert "cannot be sent" in error.message and "task 0 of map(square)" in error.traceback_text, error
        error = await error_of(pool.map(square, [1, Slow(), 2], 3))
        assert "does not unpickle" in error.message and "tasks 0 to 2" in error.traceback_text, error
        error = await error_of(pool.map(square, (1 // (5 - i) for i in range(9)), 2))
        assert error.type_name == "ZeroDivisionError" and "after 5 items" in error.traceback_text, error
        error = await error_of(pool.submit(nested_failure, pool, 4))
        assert error.message == "no 4" and "task 4 of map(partial)" in error.traceback_text, error
        assert "of submit(nested_failure)" in error.traceback_text, error
        for ordered in True, False:
            stream = (pool.imap if ordered else pool.imap_unordered)(
                functools.partial(fail_at, (40,)), range(100), 4
            )
            got = []
            try:
                async for x in stream:
                    got.append(x)
            except weft.RemoteError as raised:
                assert raised.message == "no 40", raised
            else:
                raise AssertionError("nothing was raised")
            assert (got == list(range(40))) if ordered else (set(got) >= set(range(40)) and 40 not in got), (
                got
            )
            assert [x async for x in stream] == []
        assert await pool.map(square, range(50)) == [x * x for x in range(50)], "the pool goes on"
        top = "define it at the top level"
        refused(top, pool.map, lambda x: x, [1])
        refused(top, pool.submit, lambda: 1)
        refused("top level of a module", pool.map, functools.partial(lambda x: x), [1])
        refused("runs functions, not a int", pool.map, 3, [1])
        refused("iterable", pool.map, square, 3, error=TypeError)
        for wrong in (0, -1, 1.5, "2"):
            refused("chunksize", pool.map, square, [1], wrong)
        for wrong, needle in (
            ([], "no PE"),
            ([99], "0 to"),
            ([0, 0], "once"),
            (2, "range(2)"),
            (["0"], "0 to"),
        ):
            refused(needle, weft.Pool, wrong)


def fail_on_first(x):
    return 1 // x


async def nested():
    async with weft.Pool() as pool:
        assert await fibonacci(pool, 9) == 34
        outcomes = await pool.starmap(nested_in_every_way, [(pool, n) for n in range(12)], 1)
        squares = [x * x for x in range(12)]
        assert outcomes == [(n * n, squares[:n], squares[:n]) for n in range(12)]
        assert await pool.submit(fibonacci, pool, 7) == 13
    only = weft.Pool([weft.num_pes() - 1])
    assert await only.submit(fibonacci, only, 6) == 8
    await only.close()


async def closing():
    async with weft.Pool() as pool:
        pass
    pool = weft.Pool()
    copy = await pool.submit(operator.pos, Holder(pool))
    pending = [pool.submit(busy, 0.01) for _ in range(10)]
    nested = pool.submit(fibonacci, pool, 6)
    stream = pool.imap(square, range(1000))
    assert await stream.__anext__() == 0
    del stream  # a loop that was left does not hold up close()
    gc.collect()
    both = weft.gather(pool.close(), pool.close())
    await both
    assert all(future.done() for future in pending) and await nested == 8
    await pool.close()
    for use in (
        lambda: pool.map(square, [1]),
        lambda: pool.starmap(add, []),
        lambda: pool.submit(square, 1),
        lambda: pool.imap(square, [1]),
    ):
        refused("this pool has been closed", use)
    try:
        pool.map(square, [1])
    except weft.Error as error:
        assert error.code == "closed"
    refused("this pool has been closed", copy.pool.map, square, [1])
    other = weft.Pool()
    last = weft.Array(User, weft.num_pes())
    kept = Holder(other)
    call = last[weft.num_pes() - 1].fail_to_use
    error = await error_of(other.submit(close_copy, other))
    assert "this is a copy of a pool" in error.message, error
    kept = await other.submit(operator.pos, kept)
    await other.close()
    for text in await call.call(kept.pool):
        assert "this pool has been closed" in text, text


class Holder:
    """Comes back from a task as a copy."""

    def __init__(self, pool):
        self.pool = pool

    def __pos__(self):
        return self


async def dropped():
    pool = weft.Pool()
    pool.map(functools.partial(fail_at, (2,)), range(3))
    await weft.sleep(20)


weft.run(globals()[sys.argv[1]])
print("all checked")
