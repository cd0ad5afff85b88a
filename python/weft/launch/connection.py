"""A PE's connection to the launcher: frames in, frames out, never blocking."""

from __future__ import annotations

import selectors
import socket
import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator

from weft.launch.frames import Frame, FrameDecoder, ProtocolError
from weft.launch.processes import Pe

_UCRED = struct.Struct("=iII")  # pid, uid, gid
_READ_BYTES = 1 << 18


def peer_of(connected: socket.socket) -> tuple[int, int]:
    """The process at the other end of a Unix socket when it connected, and its user."""
    pid, uid, _ = _UCRED.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return pid, uid


class Connection(ABC):
    """A process that has connected; `pe` is set once it has said which PE it is."""

    def __init__(self, peer_pid: int, peer_uid: int) -> None:
        self.peer_pid = peer_pid
        self.peer_uid = peer_uid
        self.pe: Pe | None = None
        # The PE has been told to begin its job again, and has not done so yet.
        self.is_leaving = False
        # It has stopped before. It begins in a new program, when all others have stopped too.
        self.has_stopped = False
        # It has stopped for this incarnation or one before, and may be reading its state since.
        self.is_beginning = False
        # The program of the PE can begin again.
        self.is_able = False
        self.at_end = False
        self._decoder = FrameDecoder()

    @property
    def name(self) -> str:
        """The other side's name in messages."""
        return self.pe.name if self.pe is not None else f"process {self.peer_pid}"

    @property
    def broken_off(self) -> str | None:
        """A sentence if the stream ended inside a frame; else None."""
        if not self.at_end or not self._decoder.pending_bytes:
            return None
        return f"the connection ended inside a frame, after {self._decoder.pending_bytes} bytes"

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether `close` has not been called."""

    @abstractmethod
    def watch(self, selector: selectors.BaseSelector) -> None:
        """Has the selector report what this connection waits for."""

    @abstractmethod
    def close(self, selector: selectors.BaseSelector) -> None:
        """Closes it, and sets `at_end`; `selector` reports nothing more of it."""

    @abstractmethod
    def _read(self) -> bytes | None:
        """What has arrived; empty at the end, None if there is nothing now."""

    @abstractmethod
    def send(self, frame: bytes) -> None:
        """Sends the frame, now or later. Does nothing if the peer has closed."""

    def receive(self) -> Iterator[Frame]:
        """Yields the frames that have arrived; sets `at_end` when there will be no more.

        A PE that breaks off inside a frame has hung up: it may have been killed while it wrote.

        Raises:
            ProtocolError: the bytes are no frame, or the stream ended inside a frame and belongs to a process
                that is no PE or has finished.
        """
        while not self.at_end:
            data = self._read()
            if data is None:
                return
            if data:
                yield from self._decoder.feed(data)
                continue
            self.at_end = True
            is_unfinished_pe = self.pe is not None and self.pe.finished_code is None
            if self.broken_off is not None and not is_unfinished_pe:
                raise ProtocolError(self.broken_off)


class SocketConnection(Connection):
    """One accepted socket."""

    def __init__(self, connected: socket.socket) -> None:
        super().__init__(*peer_of(connected))
        connected.setblocking(False)
        self._socket = connected
        self._unsent: deque[memoryview] = deque()

    @property
    def is_open(self) -> bool:
        return self._socket.fileno() >= 0

    def watch(self, selector: selectors.BaseSelector) -> None:
        if not self.at_end:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
            selector.modify(self._socket, events, self)

    def close(self, selector: selectors.BaseSelector) -> None:
        self.at_end = True
        selector.unregister(self._socket)
        self._socket.close()

    def _read(self) -> bytes | None:
        try:
            return self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def send(self, frame: bytes) -> None:
        """Sends what the socket takes and keeps the rest for `flush`."""
        if self.at_end:
            return
        self._unsent.append(memoryview(frame))
        self.flush()

    def flush(self) -> None:
        """Sends more of the rest. `receive` notices a peer that has closed."""
        while self._unsent and not self.at_end:
            try:
                sent = self._socket.send(self._unsent[0], socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except ConnectionError:
                self._unsent.clear()
                return
            if sent == len(self._unsent[0]):
                self._unsent.popleft()
            else:
                self._unsent[0] = self._unsent[0][sent:]
