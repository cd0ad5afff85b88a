"""What the launcher and its agent on another host say to each other, over the streams of a remote shell.

A message has a kind, a number (of a process or a connection of that host) and a payload. Both sides are
processes of one user; sizes are bounded all the same, because a shell may print into the stream.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator

from weft.launch.frames import MAX_FRAME_BYTES

#: The agent begins with it. Its number rises with every change of the messages. What a login shell has
#: printed before is no message.
GREETING = b"weft host agent 1\n"
#: So often the launcher sends a PING.
PING_S = 3.0
#: An agent that has heard nothing for so long ends its PEs.
AGENT_SILENCE_S = 10.0
#: A host that has not answered for so long is lost. Its PEs have ended by then: others take their places.
SILENCE_S = 15.0
#: A host must greet within this time.
GREETING_S = 60.0

_HEADER = struct.Struct("<III")
# An exchange of a large job is the largest frame; a message has a part of it.
_MOST_BYTES = MAX_FRAME_BYTES + 64
_MOST_NOISE_BYTES = 64 << 10


class Kind(enum.IntEnum):
    """The kinds, and what their numbers and payloads are."""

    # Of the launcher.
    JOB = 1  # JSON: see Agent.begin
    START = 2  # process; JSON: number, incarnation, num_pes, local_rank
    SIGNAL = 3  # process; <iiB: signal, the process that has connected or 0, if_handled
    PING = 4
    PAUSE = 5  # the launcher is stopped, and sends no PING until it goes on
    # Of both.
    DATA = 6  # connection; bytes of a PE's connection to the launcher
    CLOSE = 7  # connection
    # Of the agent.
    CONNECT = 8  # connection; <I: the process on that host
    STARTED = 9  # process; <I: its number on that host
    FAILED = 10  # process; a sentence
    EXITED = 11  # process; <i: exit code or negative signal
    STDOUT = 12  # process; bytes
    STDERR = 13  # process; bytes
    SAY = 14  # a sentence for the user
    PONG = 15


_KINDS = {int(kind): kind for kind in Kind}


class LinkError(Exception):
    """The stream holds no messages."""


def message(kind: Kind, number: int = 0, payload: bytes = b"") -> bytes:
    """The bytes of a message."""
    return _HEADER.pack(kind, number, len(payload)) + payload


class Decoder:
    """Takes messages from a stream. `greeting`: what comes before the first one, and is awaited."""

    def __init__(self, greeting: bytes = b"") -> None:
        self._greeting = greeting
        self._bytes = bytearray()

    @property
    def noise(self) -> str:
        """What has come in place of the greeting."""
        return self._bytes.decode(errors="replace").strip() if self._greeting else ""

    @property
    def is_greeted(self) -> bool:
        """Whether the greeting has come."""
        return not self._greeting

    def feed(self, data: bytes) -> Iterator[tuple[Kind, int, bytes]]:
        """Yields the messages that are complete.

        Raises:
            LinkError: the bytes are no messages.
        """
        self._bytes += data
        if self._greeting:
            before, found, rest = self._bytes.partition(self._greeting)
            if not found:
                if len(before) > _MOST_NOISE_BYTES:
                    raise LinkError(f"its shell prints {before[:80]!r} and more")
                return
            self._greeting = b""
            self._bytes = bytearray(rest)
        while len(self._bytes) >= _HEADER.size:
            kind, number, size = _HEADER.unpack_from(self._bytes)
            known = _KINDS.get(kind)
            if known is None or size > _MOST_BYTES:
                raise LinkError(f"a message begins with {bytes(self._bytes[: _HEADER.size])!r}")
            end = _HEADER.size + size
            if len(self._bytes) < end:
                return
            payload = bytes(self._bytes[_HEADER.size : end])
            del self._bytes[:end]
            yield known, number, payload


class Outgoing:
    """Bytes on their way into a descriptor that does not block."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self._bytes)

    def put(self, data: bytes) -> None:
        """Adds bytes. They are written by `taken`."""
        self._bytes += data

    def next_part(self) -> bytes:
        """What to write next."""
        return bytes(self._bytes[: 256 << 10])

    def taken(self, count: int) -> None:
        """So many bytes have been written."""
        del self._bytes[:count]
