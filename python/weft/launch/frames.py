"""The frames between a PE and `weft run`; src/machine/bootstrap/frame.h is the other end.

A frame is a 16-byte header (magic, type, payload size; little-endian) and its payload. Both sides check what
arrives: the last byte of the magic is the version of the protocol, raised with every change of the frames.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"WFT3"
HEADER = struct.Struct("<4sIQ")
MAX_FRAME_BYTES = 1 << 30
# In BEGIN_AGAIN: the job goes on without the process.
NO_PE = (1 << 32) - 1


class FrameType(enum.IntEnum):
    """The types of frames, each with its payload."""

    HELLO = 1  # u32 pe, and u32 incarnation from a PE that can begin its job again
    EXCHANGE = 2  # this PE's bytes
    BARRIER = 3  # empty
    FINISHED = 4  # i32 exit code
    ABORT = 5  # i32 exit code, message in UTF-8
    WELCOME = 6  # u32 number of PEs, and u64 newest protected state for a PE that can begin again
    EXCHANGED = 7  # u64 size per PE, then everybody's bytes
    BARRIER_DONE = 8  # empty
    END = 9  # why the job ends, in UTF-8
    START_JOB = 10  # PE to launcher; see mpi/spawned.py
    BEGIN_AGAIN = 11  # launcher to PE: u32 incarnation, u32 pe or NO_PE, u32 number of PEs, why, in UTF-8
    PROTECTED = 12  # PE to launcher: u64 number of the protected state, u32 plan that it carries out or 0
    RESIZE = 13  # PE or `weft resize` to launcher: u32 number of PEs; of a PE also 0, one fewer without it
    RESIZE_PLAN = 14  # launcher to PE: u32 plan or 0 for none, u32 number of PEs, u32 each PE that leaves
    RESIZE_ANSWER = 15  # launcher to who has asked: why it is refused, in UTF-8; empty if it is not
    CANNOT_RESIZE = 16  # PE to launcher: u32 plan, why, in UTF-8
    OUTLIVES = 21  # PE to launcher: u32, whether it outlives the loss of PE 0 too
    LOST = 22  # launcher to PE: u32 lost PE, why, in UTF-8
    STOPPED = 23  # PE to launcher: u32 incarnation for which it will begin a new program
    ALL_STOPPED = 24  # launcher to PE that has stopped: u32 incarnation, for which all have


class ProtocolError(Exception):
    """The other side sent bytes that are no frame, or a frame that is not allowed at that time."""


@dataclass(frozen=True)
class Frame:
    """One message."""

    type: FrameType
    payload: bytes = b""

    def integer(self) -> int:
        """The signed 32-bit number that the payload begins with."""
        if len(self.payload) < 4:
            raise ProtocolError(f"malformed frame: '{self.type.name}' of {len(self.payload)} bytes")
        return int.from_bytes(self.payload[:4], "little", signed=True)

    def number(self, offset: int) -> int:
        """The unsigned 32-bit number at `offset`."""
        return int.from_bytes(self.payload[offset : offset + 4], "little")


def encode(frame_type: FrameType, payload: bytes = b"") -> bytes:
    """The bytes of one frame.

    Raises:
        ProtocolError: the payload is larger than a frame may be.
    """
    if len(payload) > MAX_FRAME_BYTES:
        raise ProtocolError(
            f"{len(payload)} bytes in one frame, above the limit of {MAX_FRAME_BYTES}: exchange less at once"
        )
    return HEADER.pack(MAGIC, frame_type, len(payload)) + payload


class FrameDecoder:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yields the frames that `data` completes.

        Raises:
            ProtocolError: the stream is no stream of frames; nothing more can be read from it.
        """
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            frame_type, size_bytes = self._header()
            end = HEADER.size + size_bytes
            if len(self._buffer) < end:
                return
            payload = bytes(memoryview(self._buffer)[HEADER.size : end])
            del self._buffer[:end]
            yield Frame(frame_type, payload)

    @property
    def pending_bytes(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._buffer)

    def _header(self) -> tuple[FrameType, int]:
        magic, raw_type, size_bytes = HEADER.unpack_from(self._buffer)
        if magic != MAGIC:
            if magic[:3] == MAGIC[:3]:
                raise ProtocolError(
                    f"it speaks version {chr(magic[3])} of the launch protocol, this `weft run` version "
                    f"{chr(MAGIC[3])}: use the `weft` command and the library of one Weft release"
                )
            raise ProtocolError(f"malformed frame: it begins with {bytes(magic)!r}, not with {MAGIC!r}")
        try:
            frame_type = FrameType(raw_type)
        except ValueError:
            raise ProtocolError(f"malformed frame: unknown type {raw_type}") from None
        if size_bytes > MAX_FRAME_BYTES:
            raise ProtocolError(
                f"malformed frame: {size_bytes} bytes, more than the limit of {MAX_FRAME_BYTES}"
            )
        return frame_type, size_bytes
