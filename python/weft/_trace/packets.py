"""Decodes the packets that src/job/trace writes: many at a time, because a trace may have ten million.

The fields of all packets of a chunk are read together, one field of each packet in a step. Packets that are
no events are few: the schema of Perfetto reads them.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint64]
Indices = npt.NDArray[np.int64]

_CHUNK_PACKETS = 1 << 18
# Room behind the bytes of a chunk: a field that claims to go on behind them is read, and then refused.
_PADDING = 16

_PACKET = 0x0A
# Tags: the number of a field, and its wire type in the lower three bits.
_SEQUENCE = 10 << 3
_TIMESTAMP = 8 << 3
_TRACK_EVENT = 11 << 3 | 2
_CATEGORY = 3 << 3
_ANNOTATION = 4 << 3 | 2
_TYPE = 9 << 3
_NAME = 10 << 3
_TRACK = 11 << 3
_COUNTER = 30 << 3
_FLOW = 47 << 3 | 1
_END_OF_FLOW = 48 << 3 | 1
_ANNOTATION_NAME = 1 << 3
_ANNOTATION_VALUE = 3 << 3

SLICE_BEGIN, SLICE_END, INSTANT, COUNTER = 1, 2, 3, 4
# The numbers in src/job/trace/packets.h.
ENTRY_METHODS, IDLENESS, MESSAGES, TRANSFERS, CALLS, SPANS, MOVES, DEVICE_WORK = range(1, 9)
_ELEMENT, _BYTES, _PE, _WAITED, _NUMBER = range(1, 6)
NO_WAIT = np.uint64(2**64 - 1)


class MalformedError(Exception):
    """The bytes are no packets of Weft."""


@dataclass
class Events:
    """Events in the order of the file, a row of each array for each."""

    pe: Indices
    time_ns: Indices
    type: npt.NDArray[np.uint8]
    track: Numbers  # 0: the main track of the PE
    name: Numbers
    category: npt.NDArray[np.uint8]
    # The element of a method, the bytes of a message or a transfer, the length of the queue, or the number of
    # an operation.
    value: Numbers
    to_pe: Indices  # of a message that is sent; -1 else
    waited_ns: Numbers  # NO_WAIT: it has not waited
    begun_flow: Numbers  # 0: none
    ended_flow: Numbers


def decode(data: mmap.mmap, schema: Any) -> Iterator[tuple[Events, list[Any]]]:
    """Yields the events of a part of the trace, and the other packets before and between them.

    Raises:
        MalformedError: they are no packets of Weft, or the end is missing.
    """
    from google.protobuf.message import DecodeError

    for first, starts, ends in _chunks(data):
        raw = data[first : int(ends[-1]) + first]
        chunk = np.frombuffer(raw + bytes(_PADDING), dtype=np.uint8)
        sequence, at = _varints(chunk, starts + 1, ends)
        is_event = (chunk[starts] == _SEQUENCE) & (at < ends) & (chunk[at] == _TIMESTAMP)
        others = []
        for i in np.flatnonzero(~is_event):
            try:
                others.append(schema.TracePacket.FromString(raw[starts[i] : ends[i]]))
            except DecodeError as error:
                raise MalformedError(str(error)) from error
        yield _events(chunk, sequence[is_event], at[is_event], ends[is_event]), others


def _chunks(data: mmap.mmap) -> Iterator[tuple[int, Indices, Indices]]:
    """The place of a part of the file, and where in it each packet begins, behind its length, and ends."""
    at, size = 0, len(data)
    while at < size:
        first = at
        starts: list[int] = []
        ends: list[int] = []
        while at < size and len(starts) < _CHUNK_PACKETS:
            if data[at] != _PACKET:
                raise MalformedError(f"no packet begins at byte {at}")
            length = shift = 0
            while True:
                at += 1
                if at >= size or shift > 28:
                    raise MalformedError("its end is missing")
                byte = data[at]
                length |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
            at += 1
            starts.append(at - first)
            at += length
            if at > size:
                raise MalformedError("its end is missing")
            ends.append(at - first)
        yield first, np.array(starts), np.array(ends)


def _varints(chunk: npt.NDArray[np.uint8], at: Indices, ends: Indices) -> tuple[Numbers, Indices]:
    """The numbers that begin at those places, and the places behind them."""
    at = np.minimum(at, ends)
    byte = chunk[at]
    value = (byte & 0x7F).astype(np.uint64)
    behind = at + 1
    rest = np.flatnonzero(byte >= 0x80)
    shift = 7
    while rest.size > 0:
        if shift > 63:
            raise MalformedError("a number is too long")
        byte = chunk[np.minimum(behind[rest], ends[rest])]
        value[rest] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        behind[rest] += 1
        rest = rest[byte >= 0x80]
        shift += 7
    return value, behind


def _events(chunk: npt.NDArray[np.uint8], sequence: Numbers, at: Indices, ends: Indices) -> Events:
    time_ns, at = _varints(chunk, at + 1, ends)
    if np.any(at >= ends) or np.any(chunk[np.minimum(at, ends)] != _TRACK_EVENT):
        raise MalformedError("a packet with a time is no event")
    length, at = _varints(chunk, at + 1, ends)
    if np.any(at + length.astype(np.int64) != ends):
        raise MalformedError("an event is not as long as its packet")
    return _Decoder(chunk, at, ends).events(sequence, time_ns)


class _Decoder:
    """Reads the fields of many events."""

    def __init__(self, chunk: npt.NDArray[np.uint8], at: Indices, ends: Indices) -> None:
        self._chunk, self._at, self._ends = chunk, at.copy(), ends
        count = len(at)
        self._numbers = {field: np.zeros(count, np.uint64) for field in (_TYPE, _TRACK, _NAME, _CATEGORY)}
        self._flows = {field: np.zeros(count, np.uint64) for field in (_FLOW, _END_OF_FLOW)}
        self._value = np.zeros(count, np.uint64)
        self._to_pe = np.full(count, -1, np.int64)
        self._waited_ns = np.full(count, NO_WAIT)

    def events(self, sequence: Numbers, time_ns: Numbers) -> Events:
        left = np.arange(len(self._at))
        while (left := left[self._at[left] < self._ends[left]]).size > 0:
            self._read_field(left)
        if np.any(self._at != self._ends):
            raise MalformedError("a field goes on behind its event")
        return Events(
            pe=sequence.astype(np.int64) - 1,
            time_ns=time_ns.astype(np.int64),
            type=self._numbers[_TYPE].astype(np.uint8),
            track=self._numbers[_TRACK],
            name=self._numbers[_NAME],
            category=self._numbers[_CATEGORY].astype(np.uint8),
            value=self._value,
            to_pe=self._to_pe,
            waited_ns=self._waited_ns,
            begun_flow=self._flows[_FLOW],
            ended_flow=self._flows[_END_OF_FLOW],
        )

    def _read_field(self, rows: Indices) -> None:
        """The next field of those events."""
        tags = self._take(rows)
        for tag in np.unique(tags):
            found = rows[tags == tag]
            if tag in self._numbers:
                self._numbers[tag][found] = self._take(found)
            elif tag == _COUNTER:
                self._value[found] = self._take(found)
            elif tag in self._flows:
                self._flows[tag][found] = self._take_fixed(found)
            elif tag == _ANNOTATION:
                self._take_annotation(found)
            else:
                raise MalformedError(f"an event has a field with the tag {tag}")

    def _take(self, rows: Indices) -> Numbers:
        value, self._at[rows] = _varints(self._chunk, self._at[rows], self._ends[rows])
        return value

    def _take_fixed(self, rows: Indices) -> Numbers:
        at = np.minimum(self._at[rows], self._ends[rows])
        value = np.zeros(len(rows), np.uint64)
        for i in range(8):
            value |= self._chunk[at + i].astype(np.uint64) << np.uint64(8 * i)
        self._at[rows] += 8
        return value

    def _take_annotation(self, rows: Indices) -> None:
        length = self._take(rows).astype(np.int64)
        begin = self._at[rows]
        names = self._expect(rows, _ANNOTATION_NAME)
        values = self._expect(rows, _ANNOTATION_VALUE)
        if np.any(self._at[rows] - begin != length):
            raise MalformedError("an annotation is not as long as it says")
        is_pe, is_wait = names == _PE, names == _WAITED
        self._to_pe[rows[is_pe]] = values[is_pe].astype(np.int64)
        self._waited_ns[rows[is_wait]] = values[is_wait]
        is_value = ~is_pe & ~is_wait
        self._value[rows[is_value]] = values[is_value]

    def _expect(self, rows: Indices, tag: int) -> Numbers:
        if np.any(self._take(rows) != tag):
            raise MalformedError("an annotation has a name and a number")
        return self._take(rows)
