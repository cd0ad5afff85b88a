"""Finds and reads the status pages of PEs; src/job/status/status_page.h has the layout.

What a page holds is a claim: a page that cannot be is not shown, and `Page.problem` says why.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass

_LINK = "/memfd:weft-status"
_MAGIC = b"weft-pe\0"
VERSION = 1
_HEAD = struct.Struct("=8sIIiiii128sq")
_STATE = struct.Struct("=Q5q7Q")
_ROW = struct.Struct("=20s16s12sQQ")
_MOST_ROWS = 64
PAGE_BYTES = _HEAD.size + _STATE.size + _MOST_ROWS * _ROW.size
_SEQUENCE = struct.Struct("=Q")
MOST_PES = 1 << 20
# A PE changes its page within a microsecond.
_MOST_READS = 100
# As kMostQueued.
MOST_QUEUED = 4096


@dataclass(frozen=True)
class Transfer:
    """What a PE has moved in one way since its start: the names of `weft run --stats`."""

    type: str
    path: str
    memory: str
    messages: int
    bytes: int


@dataclass(frozen=True)
class Page:
    """What a PE said last. Times in ns of CLOCK_MONOTONIC, which is Python's time.monotonic_ns()."""

    pid: int
    pe: int
    num_pes: int
    launcher_pid: int  # 0: unknown
    job: str
    began_ns: int
    now_ns: int
    idle_ns: int
    idle_since_ns: int  # 0: not idle
    communication_ns: int
    published_ns: int
    sent: int
    handled: int
    queued: int
    pool_bytes: int
    num_steps: int
    step_load_ns: int
    transfers: tuple[Transfer, ...]


class DamagedPageError(Exception):
    """A page cannot be shown; the text says why. `is_harmless`: nobody misses it."""

    is_harmless = False


class ForeignPageError(DamagedPageError):
    """The page is not that of a PE: the process was forked by one, has ended, or has not filled it yet."""

    is_harmless = True


class Source:
    """The page of one PE, open. `pid` is the number of the process here."""

    def __init__(self, pid: int, link: str) -> None:
        """Raises: OSError if the process has gone or belongs to another user."""
        self.pid = pid
        self._link = link
        self._name = os.readlink(link)
        self._fd = os.open(link, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)

    def close(self) -> None:
        """Closes the file. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def is_alive(self) -> bool:
        """Whether the process still has the page: its job has not ended."""
        try:
            return os.readlink(self._link) == self._name and _is_running(self.pid)
        except OSError:
            return False

    def read(self) -> Page:
        """Reads the page.

        Raises:
            DamagedPageError: it is none, or none of this version of Weft.
        """
        file_bytes = os.fstat(self._fd).st_size
        if file_bytes == 0:
            raise ForeignPageError(f"process {self.pid} starts")
        if file_bytes != PAGE_BYTES:
            raise DamagedPageError(f"process {self.pid}: its page is none of this version of Weft")
        for _ in range(_MOST_READS):
            data = os.pread(self._fd, PAGE_BYTES, 0)
            again = os.pread(self._fd, _SEQUENCE.size, _HEAD.size)
            sequence = data[_HEAD.size : _HEAD.size + _SEQUENCE.size]
            if len(data) == PAGE_BYTES and sequence == again and not _SEQUENCE.unpack(again)[0] & 1:
                return parse(data, self.pid)
        raise DamagedPageError(f"process {self.pid}: its page is being written all the time")


def parse(data: bytes, pid: int) -> Page:
    """The page in `data`, of the process that has the number `pid` here. Raises: DamagedPageError."""
    page = parse_claim(data, f"process {pid}")
    numbers = status_of(pid, "NSpid")  # in its PID namespaces
    if numbers is None:
        raise ForeignPageError(f"process {pid} has gone")
    if str(page.pid) not in numbers.split():
        raise ForeignPageError(f"process {pid} was forked by the PE that is process {page.pid}")
    return dataclasses.replace(page, pid=pid)


def parse_claim(data: bytes, whose: str) -> Page:
    """The page in `data`, with the number that the process has where it runs. `whose`: for the error.

    Raises: DamagedPageError.
    """
    magic, version, size, own_pid, pe, num_pes, launcher, job, began_ns = _HEAD.unpack_from(data)
    if magic == bytes(len(_MAGIC)):  # which a PE writes last
        raise ForeignPageError(f"{whose} starts")
    if magic != _MAGIC or version != VERSION or size != PAGE_BYTES:
        raise DamagedPageError(f"{whose}: its page is none of this version of Weft")
    _, *times, sent, handled, queued, pool, steps, load_ns, num_rows = _STATE.unpack_from(data, _HEAD.size)
    if not 0 <= pe < num_pes <= MOST_PES or num_rows > _MOST_ROWS or min(began_ns, *times) < 0:
        raise DamagedPageError(f"{whose}: its page holds what cannot be")
    first = _HEAD.size + _STATE.size
    rows = (_ROW.unpack_from(data, first + i * _ROW.size) for i in range(num_rows))
    transfers = tuple(
        Transfer(text_in(kind), text_in(path), text_in(memory), messages, size)
        for kind, path, memory, messages, size in rows
    )
    now_ns, idle_ns, idle_since_ns, communication_ns, published_ns = times
    return Page(
        own_pid,
        pe,
        num_pes,
        max(launcher, 0),
        text_in(job),
        began_ns,
        now_ns,
        idle_ns,
        idle_since_ns,
        communication_ns,
        published_ns,
        sent,
        handled,
        min(queued, MOST_QUEUED),
        pool,
        steps,
        load_ns,
        transfers,
    )


def find() -> list[Source]:
    """The pages of all PEs of this user on this host, open. The caller closes them."""
    sources = []
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdecimal()]
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        # Processes of other users, and those that end now, cannot be read.
        with contextlib.suppress(OSError):
            if os.stat(folder).st_uid != os.geteuid():
                continue
            for name in os.listdir(folder):
                link = f"{folder}/{name}"
                if os.readlink(link).startswith(_LINK):
                    sources.append(Source(pid, link))
    return sources


def close_all(sources: Iterable[Source]) -> None:
    """Closes pages."""
    for source in sources:
        source.close()


def text_in(data: bytes) -> str:
    """Until the first zero, without what would act on a terminal."""
    text = data.split(b"\0", 1)[0].decode("ascii", errors="replace")
    return "".join(character if character.isprintable() else "?" for character in text)


def status_of(pid: int, field: str) -> str | None:
    """A field of /proc/PID/status; None if the process has gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            fields = dict(line.split(":", 1) for line in status)
    except OSError:
        return None
    return fields[field].strip()


def _is_running(pid: int) -> bool:
    """False also for a process that has ended and was not waited for: its links are gone then."""
    return os.path.exists(f"/proc/{pid}/exe")
