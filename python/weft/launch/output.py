"""Where the PEs write: to the terminal of the launcher, through it with labels, or to a file for each PE.

Threads: the launcher's. Labelled lines pass through its selector. A slow reader of the launcher's output
makes the PEs wait, and never the launcher.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
from collections.abc import Callable, Mapping

from weft.launch.command import UsageError

# A line that is longer is passed on in pieces.
_MOST_LINE_BYTES = 64 << 10
# If so much waits for a reader of the launcher's output, the PEs wait.
_MOST_PENDING_BYTES = 256 << 10
_READ_BYTES = 64 << 10
# poll(2) calls a pipe writable if it takes so much (PIPE_BUF) without blocking.
_WRITE_BYTES = 4096
# Of a pipe whose PE has ended. More comes only from processes that the PE has left behind.
MOST_LEFT_BYTES = 1 << 20

# Python's print() would otherwise come in large blocks, and not at all from a PE that is killed.
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}


class Output:
    """The launcher's own stdout and stderr, which the PEs inherit."""

    # That the launcher keeps open.
    descriptors_per_pe = 0

    def attach(self, selector: selectors.BaseSelector, num_pes: int) -> dict[str, str]:
        """Prepares a job. Returns what the environment of its PEs needs, unless it is set.

        Raises:
            UsageError: the files cannot be made.
        """
        return {}

    def open(self, pe: int) -> tuple[int | None, int | None]:
        """The descriptors of a PE's stdout and stderr; None: the launcher's own.

        They belong to this object until close_opened().
        """
        return None, None

    def renumber(self, places: Mapping[int, int]) -> None:
        """`places` has the new number of each PE that is left. A file stays that of its PE's first number."""

    def close_opened(self) -> None:
        """Closes the descriptors of open(), which the PE has now. May be called twice."""

    def write(self, text: str) -> bool:
        """Writes a sentence of the launcher to its stderr. Returns False if the caller is to do so."""
        return False

    def is_pending(self) -> bool:
        """All PEs have ended: whether something is still to be written, with the selector."""
        return False

    def abandon(self) -> None:
        """Drops what is pending."""


def output_of(label: bool, folder: str | None) -> Output:
    """That of the options --label and --output.

    Raises:
        UsageError: both are given.
    """
    if folder is not None and label:
        raise UsageError("--label and --output exclude each other: a file has the lines of one PE")
    if folder is not None:
        return FilePerPe(folder)
    return Labelled() if label else Output()


class FilePerPe(Output):
    """A file for each PE, `pe-0.txt` and so on, with its stdout and stderr in the order of the writes."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._fds: list[int] = []
        self._begun: set[int] = set()

    def attach(self, selector: selectors.BaseSelector, num_pes: int) -> dict[str, str]:
        self._digits = len(str(num_pes - 1))
        try:
            os.makedirs(self._folder, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--output {self._folder}: {error.strerror}; give a folder") from None
        return UNBUFFERED

    def open(self, pe: int) -> tuple[int | None, int | None]:
        path = os.path.join(self._folder, f"pe-{pe:0{self._digits}}.txt")
        try:
            # A process in the place of a lost one goes on in its file.
            new = 0 if pe in self._begun else os.O_TRUNC
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | new | os.O_APPEND, 0o666)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; give --output a folder that you can write") from None
        self._begun.add(pe)
        self._fds = [fd]
        return fd, fd

    def close_opened(self) -> None:
        while self._fds:
            os.close(self._fds.pop())


class Labelled(Output):
    """The lines of all PEs, each with the number of its PE in front, on the launcher's stdout and stderr."""

    descriptors_per_pe = 2

    def __init__(self) -> None:
        self._opened: list[int] = []
        self._pipes: list[_Pipe] = []

    def attach(self, selector: selectors.BaseSelector, num_pes: int) -> dict[str, str]:
        self._selector = selector
        self._digits = len(str(num_pes - 1))
        self._sinks = (Sink(selector, 1), Sink(selector, 2))
        return UNBUFFERED

    def open(self, pe: int) -> tuple[int | None, int | None]:
        for sink in self._sinks:
            ours, theirs = os.pipe()
            self._opened.append(theirs)
            self._pipes.append(_Pipe(self._selector, ours, pe, self._digits, sink))
        return self._opened[0], self._opened[1]

    def renumber(self, places: Mapping[int, int]) -> None:
        for pipe in self._pipes:
            pipe.renumber(places)

    def close_opened(self) -> None:
        while self._opened:
            os.close(self._opened.pop())

    def write(self, text: str) -> bool:
        self._sinks[1].put(text.encode())
        return True

    def is_pending(self) -> bool:
        while self._pipes:
            self._pipes.pop(0).drain()
        return any(sink.is_pending for sink in self._sinks)

    def abandon(self) -> None:
        for sink in self._sinks:
            sink.abandon()


class Sink:
    """One of the launcher's descriptors. It writes when it can without blocking.

    `is_owner`: it closes the descriptor when it is finished.
    """

    def __init__(self, selector: selectors.BaseSelector, fd: int, *, is_owner: bool = False) -> None:
        self._selector = selector
        self._fd = fd
        self._is_owner = is_owner
        self._is_finished = False
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._pending = bytearray()
        self._watched = False
        self._resume: list[Callable[[], None]] = []
        self.closed = False  # its reader has gone

    @property
    def is_pending(self) -> bool:
        return len(self._pending) > 0

    @property
    def is_full(self) -> bool:
        return len(self._pending) >= _MOST_PENDING_BYTES

    def put(self, data: bytes) -> None:
        """Writes the data, now or later."""
        if self.closed:
            return
        self._pending += data
        if not self._watched:
            self._flush()

    def call_when_drained(self, function: Callable[[], None]) -> None:
        self._resume.append(function)

    def finish(self) -> None:
        """No more data comes. May be called twice."""
        self._is_finished = True
        self._close_if_done()

    def abandon(self) -> None:
        self.closed = True
        self._pending.clear()
        self._watch(False)
        self._wake()
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._is_owner and self._is_finished and not self._pending:
            self._is_owner = False
            self.closed = True
            os.close(self._fd)

    def _flush(self) -> None:
        while self._pending:
            try:
                if not self._poll.poll(0):
                    raise BlockingIOError
                written = os.write(self._fd, self._pending[:_WRITE_BYTES])
            except BlockingIOError:
                self._watch(True)
                return
            except OSError:  # EPIPE: PEs that write get it too, as if they wrote themselves
                self.abandon()
                return
            del self._pending[:written]
        self._watch(False)
        self._wake()
        self._close_if_done()

    def _watch(self, wanted: bool) -> None:
        # A regular file, which no selector takes, is always writable.
        if wanted and not self._watched:
            self._selector.register(self._fd, selectors.EVENT_WRITE, self._flush)
        elif self._watched and not wanted:
            self._selector.unregister(self._fd)
        self._watched = wanted

    def _wake(self) -> None:
        resume, self._resume = self._resume, []
        for function in resume:
            function()


class _Pipe:
    """What one PE writes to one of its streams."""

    def __init__(self, selector: selectors.BaseSelector, fd: int, pe: int, digits: int, sink: Sink) -> None:
        self._selector = selector
        self._fd = fd
        self._pe: int | None = pe  # None: the process is no PE any more
        self._digits = digits
        self._label = self._label_of(pe)
        self._sink = sink
        self._line = b""  # begun
        os.set_blocking(fd, False)
        self._register()

    def renumber(self, places: Mapping[int, int]) -> None:
        """The PE has another number, or is gone: what its process still writes has the one before."""
        self._pe = None if self._pe is None else places.get(self._pe)
        if self._pe is not None:
            self._label = self._label_of(self._pe)

    def _label_of(self, pe: int) -> bytes:
        return f"{pe:{self._digits}}: ".encode()

    def drain(self) -> None:
        """The PE has ended: takes what it has left, and closes the pipe."""
        left = MOST_LEFT_BYTES
        while self._fd >= 0 and left > 0 and (size := self._take()) > 0:
            left -= size
        self._close()

    def _register(self) -> None:
        if self._fd >= 0:
            self._selector.register(self._fd, selectors.EVENT_READ, self._on_readable)

    def _on_readable(self) -> None:
        # An event of before a close or a pause may still come.
        if self._fd < 0 or self._fd not in self._selector.get_map():
            return
        if self._take() == 0 or self._sink.closed:
            self._close()
        elif self._sink.is_full:
            self._selector.unregister(self._fd)
            self._sink.call_when_drained(self._register)

    def _take(self) -> int:
        """Returns how many bytes came; 0 at the end, -1 if there are none now."""
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return -1
        *lines, self._line = (self._line + data).split(b"\n")
        if len(self._line) >= _MOST_LINE_BYTES:
            lines.append(self._line)
            self._line = b""
        if lines:
            self._sink.put(b"".join(self._label + line + b"\n" for line in lines))
        return len(data)

    def _close(self) -> None:
        if self._fd < 0:
            return
        if self._line:
            self._sink.put(self._label + self._line + b"\n")
        with contextlib.suppress(KeyError):
            self._selector.unregister(self._fd)
        os.close(self._fd)
        self._fd = -1
