"""Rounds between the streams of two PEs, which nothing but signals orders; `argv[1]` is the memory's kind."""

import sys

import numpy as np

import weft
import weft.pgas as pgas

KIND = sys.argv[1]
ROUNDS = 30
FIRST = 2**32 - ROUNDS // 2  # the counters pass 2**32


async def rounds(world: pgas.Team) -> None:
    """PE 0 sends one number a round through a mailbox on PE 1, which copies it on and returns the credit."""
    flag = pgas.make_segment(1, "uint32", KIND)
    mailbox = pgas.make_segment(1, "int64", KIND)
    numbers = pgas.make_segment(ROUNDS, "int64", KIND)
    await pgas.put(FIRST - 1, flag.pointer())
    await pgas.put(np.arange(1, ROUNDS + 1) if world.rank == 0 else np.zeros(ROUNDS, "i8"), numbers.pointer())
    flags = await world.allgather(flag.pointer())
    mailboxes = await world.allgather(mailbox.pointer())
    other = 1 - world.rank
    for pointer in (flags[other], mailboxes[other]):
        await pointer.learn()
    await world.barrier()
    stream = weft.Stream(KIND)
    queued = []
    for i in range(ROUNDS):
        counter = (FIRST + i) % 2**32
        number = numbers.pointer(i)
        if world.rank == 0:
            queued.append(pgas.copy_on_stream(number, mailboxes[1], 1, stream))
            queued.append(pgas.signal_on_stream(flags[1], counter, stream))
            queued.append(pgas.wait_on_stream(flags[0], counter, stream))
        else:
            queued.append(pgas.wait_on_stream(flags[1], counter, stream=stream, kind=KIND))
            queued.append(pgas.copy_on_stream(mailboxes[1], number, 1, stream))
            queued.append(pgas.signal_on_stream(to=flags[0], value=counter, stream=stream))
    assert await weft.gather(*queued) == [None] * len(queued)
    assert (await pgas.get(numbers.pointer(), ROUNDS)).tolist() == list(range(1, ROUNDS + 1))
    assert await pgas.get(flag.pointer()) == (FIRST + ROUNDS - 1) % 2**32
    await world.barrier()


def refused(words: tuple[str, ...], call, *arguments) -> None:
    try:
        call(*arguments)
    except (weft.Error, TypeError) as error:
        assert all(word in str(error) for word in words), (words, str(error))
        return
    raise AssertionError(f"not refused: {call.__name__}{arguments}")


async def misuse(world: pgas.Team) -> None:
    own = pgas.make_segment(2, "uint32", KIND)
    theirs = (await world.allgather(own.pointer()))[1 - world.rank]
    host = pgas.make_segment(1, "uint32")
    stream = weft.Stream(KIND)
    before = (await pgas.get(own.pointer(), 2)).tolist()
    for call in (pgas.signal_on_stream, pgas.wait_on_stream):
        name = f"weft.pgas.{call.__name__}"
        for value in (-1, 2**32, 1.5, "1"):
            refused((name, "uint32"), call, own.pointer(), value, stream)
        refused((name, "it works on uint32"), call, own.pointer().cast("int32"), 1, stream)
        refused((name, "takes a stream"), call, own.pointer(), 1, None)
        refused((name,), call, own.local, 1, stream)
        refused(("does not have 4 bytes behind it",), call, own.pointer() + 2, 1, stream)
        unaligned = (own.pointer().cast("u1") + 1).cast("u4")
        refused(("a multiple of 4",), call, unaligned, 1, stream)
        refused(("device memory",), call, host.pointer(), 1, stream)
    refused(("learn()",), pgas.signal_on_stream, theirs, 1, stream)
    await theirs.learn()
    refused(("keep the word in a segment of the PE that waits",), pgas.wait_on_stream, theirs, 1, stream)
    assert (await pgas.get(own.pointer(), 2)).tolist() == before
    await world.barrier()


async def main(world: pgas.Team) -> None:
    await rounds(world)
    await misuse(world)
    if world.rank == 0:
        print("all checked")


weft.pgas.run(main)
