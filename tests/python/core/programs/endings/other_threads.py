"""What another thread drops last ends on the PE's thread, when that has its next turn; checks itself."""

import threading
from pathlib import Path

import numpy as np

import weft


def is_mapped(address):
    """Whether there is memory at that address; emulated devices unmap freed memory."""
    spans = (line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines())
    return any(int(begin, 16) <= address < int(end, 16) for begin, end in spans)


def drop_on_another_thread(held):
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert not held


async def main():
    held = [weft.DeviceArray(5, float, "emulated:0")]
    address = held[0].ptr
    drop_on_another_thread(held)
    assert is_mapped(address), "freed by the thread that dropped it"
    while is_mapped(address):
        await weft.sleep(0)

    part = weft.DeviceArray(5, float, "emulated:0")
    address = part.ptr
    held = [part]
    part = part[1:]
    drop_on_another_thread(held)
    await weft.sleep(0)
    assert is_mapped(address), "freed although a part of it is in use"
    del part
    assert not is_mapped(address), "this is the PE's thread, which need not be asked"

    drop_on_another_thread([weft.Stream("emulated:0"), weft.register(np.zeros(1000))])
    # What is still on its way to the PE when the job ends goes with the job.
    held = [weft.DeviceArray(5, float, "emulated:0"), weft.register(np.zeros(1000))]
    address = held[0].ptr
    drop_on_another_thread(held)
    return address


address = weft.run(main)
if address is not None:  # PE 0's
    assert not is_mapped(address), "left behind by the job"
    print("all checked")
