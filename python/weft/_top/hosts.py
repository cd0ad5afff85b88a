"""The status pages of PEs on other hosts; src/job/status/other_hosts.h has the layout.

The first PE of this host fetches them when it is asked, and all they hold is a claim.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass

from weft._top.pages import MOST_PES, PAGE_BYTES, VERSION, DamagedPageError, Page, parse_claim, text_in

_LINK = "/memfd:weft-others"
_MAGIC = b"weft-oh\0"
_HEAD = struct.Struct("=8sIIii")
_FRONT = struct.Struct("=QqqQ64s")  # of a slot; the page follows
SLOT_BYTES = _FRONT.size + PAGE_BYTES
_SEQUENCE = struct.Struct("=Q")
_POLL_S = 0.005


@dataclass(frozen=True)
class Answer:
    """What a PE of another host said last.

    `answered_ns` is of the clock of this host, `read_ns` of that of the PE's host.
    """

    host: str
    answered_ns: int
    read_ns: int
    resident_bytes: int
    page: Page


class OtherHosts:
    """Asks the first PE of this host, one of the processes `pids`. Without it there are no answers."""

    def __init__(self, pids: Iterable[int]) -> None:
        self.problems: list[str] = []  # of the last fetch
        self._pid = 0
        self._ask_fd = -1
        self._num_pes = 0
        self._fd = -1
        for pid in pids:
            if self._fd < 0:
                with contextlib.suppress(OSError):  # the process has gone
                    self._open(pid)

    def close(self) -> None:
        """Closes the file. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def fetch(self, num_others: int, limit_s: float) -> dict[int, Answer]:
        """Asks, waits for `num_others` PEs, for `limit_s` at most, and returns what each PE said last, by PE.

        A PE that computes has not answered now: its `answered_ns` is older than the call.
        """
        if self._fd < 0:
            return {}
        asked_ns = time.monotonic_ns()
        self._ask()
        while time.monotonic_ns() - asked_ns < limit_s * 1e9:
            fronts = (self._front(pe) for pe in range(self._num_pes))
            fresh = sum(front[0] % 2 == 0 and front[1] >= asked_ns for front in fronts)
            if fresh >= num_others:
                break
            time.sleep(_POLL_S)
        self.problems = []
        answers = {}
        for pe in range(self._num_pes):
            try:
                answer = self._read(pe)
            except DamagedPageError as problem:
                self.problems.append(str(problem))
                continue
            if answer is not None:
                answers[pe] = answer
        return answers

    def _open(self, pid: int) -> None:
        folder = f"/proc/{pid}/fd"
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):  # the PE has closed it meanwhile
                if os.readlink(f"{folder}/{name}").startswith(_LINK) and self._open_file(pid, name):
                    return

    def _open_file(self, pid: int, name: str) -> bool:
        """Keeps the file of that descriptor, if it is one of a leader."""
        fd = os.open(f"/proc/{pid}/fd/{name}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            head = os.pread(fd, _HEAD.size, 0)
            if len(head) < _HEAD.size:
                return False
            magic, version, slot_bytes, num_pes, ask_fd = _HEAD.unpack(head)
            size = _HEAD.size + num_pes * SLOT_BYTES
            is_right = (magic, version, slot_bytes) == (_MAGIC, VERSION, SLOT_BYTES)
            if not is_right or not 0 < num_pes <= MOST_PES or os.fstat(fd).st_size != size:
                return False
            self._pid, self._fd, self._ask_fd, self._num_pes = pid, fd, ask_fd, num_pes
            fd = -1
            return True
        finally:
            if fd >= 0:
                os.close(fd)

    def _ask(self) -> None:
        pipe = f"/proc/{self._pid}/fd/{self._ask_fd}"
        with contextlib.suppress(OSError):  # the job has ended, or was asked by many
            if os.readlink(pipe).startswith("pipe:["):
                fd = os.open(pipe, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
                try:
                    os.write(fd, b"?")
                finally:
                    os.close(fd)

    def _front(self, pe: int) -> tuple[int, int, int, int, bytes]:
        data = os.pread(self._fd, _FRONT.size, _HEAD.size + pe * SLOT_BYTES)
        sequence, answered_ns, read_ns, resident_bytes, host = _FRONT.unpack(data)
        return sequence, answered_ns, read_ns, resident_bytes, host

    def _read(self, pe: int) -> Answer | None:
        """None if the PE has never answered. Raises: DamagedPageError."""
        first = _HEAD.size + pe * SLOT_BYTES
        if self._front(pe)[0] == 0:  # most slots are of PEs of this host
            return None
        data = os.pread(self._fd, SLOT_BYTES, first)
        again = os.pread(self._fd, _SEQUENCE.size, first)
        if data[: _SEQUENCE.size] != again or _SEQUENCE.unpack(again)[0] & 1:
            return None  # it changes now; the next sample has it
        _, answered_ns, read_ns, resident_bytes, name = _FRONT.unpack_from(data)
        host = text_in(name)
        page = parse_claim(data[_FRONT.size :], f"PE {pe} on {host}")
        if page.pe != pe or page.num_pes != self._num_pes or read_ns < 0:
            raise DamagedPageError(f"PE {pe} on {host}: its page holds what cannot be")
        return Answer(host, answered_ns, read_ns, resident_bytes, page)
