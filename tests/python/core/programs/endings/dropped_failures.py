"""Another thread drops a failed call's future, or a failed operation, while the PE sleeps."""

import sys
import threading
import time
from pathlib import Path

import numpy as np

import weft

held = []
MAIN_THREAD = threading.get_native_id()


class Failing(weft.Chare):
    def divide(self):
        return 1 / 0


def is_asleep():
    """Whether the PE's thread sleeps and has not run for a while."""
    before = switches()
    time.sleep(0.05)
    return "State:\tS" in status() and switches() == before


def status():
    return Path(f"/proc/self/task/{MAIN_THREAD}/status").read_text()


def switches():
    return [line for line in status().splitlines() if "ctxt_switches" in line]


def drop_when_asleep():
    while not is_asleep():
        pass
    held.clear()


async def failed_future():
    held.append(weft.Singleton(Failing).divide.call())
    while not held[0].done():
        await weft.sleep(0)


async def failed_operation():
    weft.emulated.set_faults(fail_copy=1)
    held.append(weft.DeviceArray(8, float, "emulated:0").copy_from(np.zeros(8)))
    while not held[0].done():
        await weft.sleep(0)


async def main():
    await (failed_future if sys.argv[1] == "future" else failed_operation)()
    threading.Thread(target=drop_when_asleep, daemon=True).start()
    await weft.Future()


weft.run(main)
