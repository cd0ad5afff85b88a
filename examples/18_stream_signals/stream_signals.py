"""Signals on streams: numbers go around a ring of devices, and no CPU waits for any of them.

weft run -n 2 examples/18_stream_signals/stream_signals.py

The devices are emulated, so it runs on any machine. On GPUs the kind is "cuda", and CuPy or PyTorch take the
stream.
"""

import weft
import weft.pgas

KIND = "emulated"
ROUNDS = 5


async def main(world: weft.pgas.Team) -> None:
    next_rank, previous = (world.rank + 1) % world.size, (world.rank - 1) % world.size

    # Two numbers, the one to send and the one that has arrived; and two words, which lie with the PE whose
    # stream waits for them.
    numbers = weft.pgas.make_segment(2, "int64", KIND)
    words = weft.pgas.make_segment(2, "uint32", KIND)
    outbox, inbox = numbers.pointer(0), numbers.pointer(1)
    arrived, credit = words.pointer(0), words.pointer(1)
    await weft.pgas.put(world.rank, outbox)

    # A stream cannot ask where memory is: this PE learns it ahead.
    inboxes, arrivals, credits = [await world.allgather(each) for each in (inbox, arrived, credit)]
    for pointer in (inboxes[next_rank], arrivals[next_rank], credits[previous]):
        await pointer.learn()

    stream = weft.Stream(KIND)
    for i in range(1, ROUNDS + 1):
        # To the next PE, whose stream waits for the word.
        weft.pgas.copy_on_stream(outbox, inboxes[next_rank], 1, stream)
        weft.pgas.signal_on_stream(arrivals[next_rank], i, stream)
        # From the previous PE, which may then send again.
        weft.pgas.wait_on_stream(arrived, i, stream)
        weft.pgas.copy_on_stream(inbox, outbox, 1, stream)
        weft.pgas.signal_on_stream(credits[previous], i, stream)
        weft.pgas.wait_on_stream(credit, i, stream)
    await weft.stream_done(stream)  # the CPU has queued all rounds, and waits for their end alone

    print(f"rank {world.rank} has the number of rank {await weft.pgas.get(outbox)}")
    await world.barrier()  # the memory stays until all ranks are here


weft.pgas.run(main)
