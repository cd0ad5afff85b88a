"""A job whose last PE is lost again and again, and which says what its other processes hold.

again.py RECOVERIES [EVERY] prints a JSON line after every EVERY-th recovery, with these counts of the
launcher and of PE 0: resident memory in KiB, descriptors, mappings, threads; and the bytes of the files in
the job's folder of shared memory.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import numpy as np

import weft

RECOVERIES = int(sys.argv[1])
EVERY = int(sys.argv[2]) if len(sys.argv) > 2 else 1


def held_by(pid: int) -> dict[str, int]:
    """What a process holds."""
    folder = Path(f"/proc/{pid}")
    status = (folder / "status").read_text()
    counts = dict(re.findall(r"^(\w+):\s+(\d+)", status, re.MULTILINE))
    return {
        "rss_kib": int(counts["VmRSS"]),
        "threads": int(counts["Threads"]),
        "descriptors": len(os.listdir(folder / "fd")),
        "mappings": len((folder / "maps").read_text().splitlines()),
    }


def shared_bytes() -> int:
    folder = Path(os.environ["UCX_POSIX_DIR"])
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class Cell(weft.Chare):
    def __init__(self) -> None:
        self.values = np.arange(10_000.0)
        self.channel = weft.Channel(self, self.proxy[(self.index + 1) % len(self.proxy)])
        self.device = weft.DeviceArray(1000, np.float64, "emulated")

    async def advance(self) -> float:
        self.values += 1
        await self.device.copy_from(np.arange(1000.0))
        return float(self.values[0])


class End(weft.Chare):
    """The PE on which it is ends."""

    def end(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


async def main() -> None:
    saved = await weft.recovered()
    cells = weft.Array(Cell, 2 * weft.num_pes()) if saved is None else saved["cells"]
    await cells.advance.call()
    await weft.protect({"cells": cells})
    done = weft.recoveries()
    if done > 0 and done % EVERY == 0:
        sample = {"recoveries": done, "launcher": held_by(os.getppid()), "pe_0": held_by(os.getpid())}
        print(json.dumps(sample | {"shared_bytes": shared_bytes()}), flush=True)
    if done < RECOVERIES:
        weft.Singleton(End, weft.num_pes() - 1).end()
        await weft.sleep(60)


weft.run(main)
