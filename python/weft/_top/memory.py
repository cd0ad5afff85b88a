"""The memory of processes, as the system and nvidia-smi know it."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time

_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
# nvidia-smi takes up to a second.
_DEVICE_INTERVAL_S = 2.0


def resident_bytes(pid: int) -> int:
    """The resident memory of a process; 0 if it has gone."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * _PAGE_SIZE
    except (OSError, IndexError, ValueError):
        return 0


class DeviceMemory:
    """How much GPU memory processes use, by nvidia-smi, which a thread asks while `current` is called."""

    def __init__(self) -> None:
        self._program = shutil.which("nvidia-smi")
        self._bytes: dict[int, int] = {}
        self._asked_s = float("-inf")
        self._thread: threading.Thread | None = None

    def current(self) -> dict[int, int]:
        """By process, as it was known last. Does not block."""
        is_asking = self._thread is not None and self._thread.is_alive()
        if self._program and not is_asking and time.monotonic() - self._asked_s >= _DEVICE_INTERVAL_S:
            self._asked_s = time.monotonic()
            self._thread = threading.Thread(target=self._ask, daemon=True)
            self._thread.start()
        return self._bytes

    def _ask(self) -> None:
        assert self._program is not None
        query = ["--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
        try:
            answer = subprocess.run([self._program, *query], capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.SubprocessError):
            return
        sums: dict[int, int] = {}
        for line in answer.stdout.splitlines():
            pid, _, mib = (part.strip() for part in line.partition(","))
            if pid.isdecimal() and mib.isdecimal():
                sums[int(pid)] = sums.get(int(pid), 0) + (int(mib) << 20)
        self._bytes = sums
