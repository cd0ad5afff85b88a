"""Programs of chares that wait for results, reductions, conditions and one another: see cases.py."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cases import right, run_all, wrong
from elements import LATE_S, Cell, Gate, Late, Lock, Never, Store, User, Walker, cells, late

import weft

# --- Reductions


@wrong("reduction 0 of Cell lacks Cell[2]", "the result of reduction 0 of Cell")
async def reduce_without() -> None:
    await cells(4).reduce_without.call(2)


@wrong("reduction 0 of Cell lacks Cell[3]", "the result of reduction 0 of Cell", pes=4)
async def reduce_on_four() -> None:
    await cells(8).reduce_without.call(3)


@wrong("Cell[0] waits for Cell[1], and Cell[1] for Cell[0]", "reduction 0 of Cell lacks Cell[1]")
async def reduce_or_receive() -> None:
    await cells().reduce_or_receive.call()


@wrong("reduction 1 of Cell lacks Cell[0]")
async def reduce_twice_or_once() -> None:
    await cells().reduce_twice_or_once.call()


@wrong("reduction 0 of Cell lacks Cell[2]", "main on PE 0 (waits.py:")
async def contribute_without() -> None:
    done: weft.Future[int] = weft.Future()
    cells(4).contribute_without(2, done)
    await done


@wrong("reduction 0 of a section of Cell lacks Cell[2]", "main on PE 0 (waits.py:")
async def contribute_to_section() -> None:
    done: weft.Future[int] = weft.Future()
    section = cells(6)[::2]
    section.contribute_to_section(section, 2, done)
    await done


@wrong("at_sync() 0 of Walker lacks Walker[1]")
async def at_sync_of_some() -> None:
    done: weft.Future[None] = weft.Future()
    weft.Array(Walker, 4, args=(done, 1)).step()
    await done


# --- Calls and futures


@wrong("Cell[1].call_back (", "a future that nothing has set", "the result of Cell[1].call_back")
async def call_other() -> None:
    await cells()[0].call_other.call()


@wrong(
    "Cell[0] waits for Cell[1], and Cell[1] for Cell[0]",
    "cause: Cell[1].never_true: its when-condition holds for none of 1 call",
)
async def call_around() -> None:
    await cells()[0].call_around.call(4)


@wrong("main on PE 0 (waits.py:", "a future that nothing has set")
async def future_unset() -> None:
    await weft.Future()


@wrong("a future of several values that was not set so often")
async def future_of_several() -> None:
    future: weft.Future[Any] = weft.Future(2)
    future.set(1)
    await future


@wrong("Never[1] (elements.py:", "a future that nothing has set")
async def never_created() -> None:
    await weft.Array(Never, 2)


@wrong("main on PE 0 (waits.py:", "a future that nothing has set")
async def never_awaited_by_asyncio() -> None:
    """The coroutine that should set it was called, and not awaited."""
    future: weft.Future[int] = weft.Future()

    async def set_it() -> None:
        future.set(1)

    set_it().close()
    await future


@wrong("main on PE 0 (waits.py:", "a future that nothing has set")
async def future_in_gather() -> None:
    await weft.gather(cells()[1].tick.call(1), weft.Future())


@wrong("Member[1].run: a future that nothing has set", "main on PE 0 (waits.py:")
async def pool_task() -> None:
    await weft.Pool().map(never_of, range(4))


async def never_of(value: int) -> None:
    await weft.Future()


# --- Conditions and locks


@wrong("Store[0].take: its when-condition holds for none of 3 calls")
async def take_from_empty() -> None:
    store = weft.Array(Store, 1)
    store[0].take()
    store[0].take()
    await store[0].take.call()


@wrong("Store[0].put: its when-condition holds for none of 1 call")
async def put_into_full() -> None:
    store = weft.Array(Store, 1)
    for item in range(3):
        await store[0].put.call(item)


@wrong("Lock[0].take: its when-condition holds for none of 1 call", "the result of Lock[1].take")
async def lock_order() -> None:
    await weft.Array(User, 2).use.call(weft.Array(Lock, 2), 2)


@wrong(
    "Lock[0].take: its when-condition holds for none of 1 call",
    "the result of Lock[1].take, and 3 like it",
    pes=4,
)
async def philosophers() -> None:
    await weft.Array(User, 4).use.call(weft.Array(Lock, 4), 4)


@wrong("Lock[0].take: its when-condition holds for none of 1 call", "User[0].take_twice (elements.py:")
async def lock_twice() -> None:
    await weft.Array(User, 1)[0].take_twice.call(weft.Array(Lock, 1))


@wrong("Gate[1].enter: its when-condition holds for none of 1 call", "Cell[1].work_with (elements.py:")
async def gate_shut() -> None:
    gates = weft.Array(Gate, 2)
    gates[0].open()
    await cells().work_with.call(gates[1])


# --- Elements that are missing


@wrong("Cell[3] waits for nothing, and main on PE 0 waits for it", "the result of Cell[3].tick")
async def call_before_insertion() -> None:
    await weft.Array(Cell, 8, sparse=True)[3].tick.call(1)


# --- Right ones


@right()
async def sleep() -> None:
    await weft.sleep(LATE_S)


@right()
async def time_out() -> None:
    try:
        async with weft.timeout(LATE_S):
            await weft.Future()
    except TimeoutError:
        pass


@right()
async def wait_with_timeout() -> None:
    future: weft.Future[int] = weft.Future()
    await weft.wait([future], timeout=LATE_S)
    future.set(1)


@right()
async def take_as_completed_with_timeout() -> None:
    future: weft.Future[int] = weft.Future()
    try:
        async for _ in weft.as_completed([future], timeout=LATE_S):
            pass
    except TimeoutError:
        future.set(1)


@right()
async def timer_sets() -> None:
    future: weft.Future[int] = weft.Future()
    thread = threading.Timer(LATE_S, lambda: future.set(1))
    thread.start()
    await future
    thread.join()


@right()
async def thread_on_another_pe() -> None:
    await cells().in_thread.call()


@right()
async def thread_posts() -> None:
    future: weft.Future[int] = weft.Future()

    def post() -> None:
        time.sleep(LATE_S)
        weft.post_from_any_thread(lambda: future.set(1))

    thread = threading.Thread(target=post)
    thread.start()
    await future
    thread.join()


@right()
async def executor() -> None:
    async def sleep() -> None:
        with ThreadPoolExecutor(1) as threads:
            await asyncio.get_running_loop().run_in_executor(threads, time.sleep, LATE_S)

    await weft.asyncio_future(sleep())


@right()
async def asyncio_sleep() -> None:
    await weft.asyncio_future(asyncio.sleep(LATE_S))


@right()
async def asyncio_on_another_pe() -> None:
    await cells().in_asyncio.call()


@right()
async def asyncio_subprocess() -> None:
    async def sleep() -> None:
        process = await asyncio.create_subprocess_exec("sleep", str(LATE_S))
        await process.wait()

    await weft.asyncio_future(sleep())


@right()
async def asyncio_connection() -> None:
    """A server that answers late."""

    async def serve() -> None:
        async def answer(reader: Any, writer: Any) -> None:
            await asyncio.sleep(LATE_S)
            writer.write(b"x")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await reader.read()
        writer.close()
        server.close()

    await weft.asyncio_future(serve())


@right()
async def subprocess_of_another_pe() -> None:
    await cells().run_program_late.call()


@right()
async def compute_late() -> None:
    await cells().compute_late.call()


@right()
async def quiescence_behind_computation() -> None:
    cells().compute_late()
    await weft.quiescence()


@right()
async def reduce_late() -> None:
    await cells().work_late.call()


@right(pes=4)
async def reduce_late_on_four() -> None:
    await cells(8).work_late.call()


@right()
async def future_set_late() -> None:
    future: weft.Future[int] = weft.Future()
    cells().set_late(future)
    await future


@right()
async def section_late() -> None:
    done: weft.Future[int] = weft.Future()
    section = cells(3)[:2]
    section.contribute_late(section, done)
    await done


@right()
async def created_late() -> None:
    await weft.Array(Late, 2)


@right()
async def gate_opens_late() -> None:
    gate = weft.Array(Gate, 2)[1]
    entered = gate.enter.call()
    await weft.sleep(LATE_S)
    gate.open()
    await entered


@right()
async def lock_held_long() -> None:
    await weft.Array(User, 2).hold.call(weft.Array(Lock, 1))


@right()
async def store_filled_late() -> None:
    store = weft.Array(Store, 1)
    taken = store[0].take.call()
    await weft.sleep(LATE_S)
    store[0].put(1)
    await taken


@right()
async def pool_of_late_tasks() -> None:
    async with weft.Pool() as pool:
        await pool.map(late, range(4))


@right()
async def insert_late() -> None:
    array = weft.Array(Cell, 8, sparse=True)
    ticked = array[3].tick.call(1)
    await weft.sleep(LATE_S)
    await array.insert(3)
    await array.done_inserting()
    await ticked


@right(looks=0)
async def busy_seldom() -> None:
    """Something happens between two looks of the watch."""
    await cells().tick.call(8)


@right(looks=0)
async def yields_all_the_time() -> None:
    until = time.monotonic() + LATE_S
    while time.monotonic() < until:
        await weft.yield_now()


@right(looks=0)
async def device_copy() -> None:
    stream = weft.Stream("emulated")
    array = weft.DeviceArray(3, float, "emulated")
    weft.emulated.launch(lambda array: time.sleep(LATE_S), array, stream=stream)
    await weft.stream_done(stream)


if __name__ == "__main__":
    run_all()
