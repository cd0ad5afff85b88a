"""Reads the file of `weft run --trace`: the packets that src/job/trace/perfetto_trace.cpp writes."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

IDLE = "idle"
_SEND = "send"
_MESSAGE = "message"
_CALLS = "calls of MPI"
_CHUNK_BYTES = 1 << 24


class TraceError(Exception):
    """The file is no trace of Weft."""


@dataclass
class Slices:
    """Parts of entry methods, times of idleness, and, without a length, messages that called no method."""

    start_ns: array[int] = field(default_factory=lambda: array("q"))
    end_ns: array[int] = field(default_factory=lambda: array("q"))
    name: list[str] = field(default_factory=list)
    element: array[int] = field(default_factory=lambda: array("Q"))
    # How long the method had waited before this part; -1: this is its first part.
    waited_ns: array[int] = field(default_factory=lambda: array("q"))
    # The message that caused it; 0 if none is known.
    message: array[int] = field(default_factory=lambda: array("Q"))


@dataclass
class Transfers:
    """Those of one path."""

    count: int = 0
    size_bytes: int = 0
    time_ns: int = 0


@dataclass
class Calls:
    """Those of one function of MPI by the ranks of a PE."""

    count: int = 0
    time_ns: int = 0
    longest_ns: int = 0


@dataclass
class PeTrace:
    """What a PE did."""

    slices: Slices = field(default_factory=Slices)
    transfers: dict[str, Transfers] = field(default_factory=dict)
    calls: dict[str, Calls] = field(default_factory=dict)
    begin_ns: int = 0
    end_ns: int = 0


@dataclass
class Trace:
    """What a job did."""

    pes: dict[int, PeTrace] = field(default_factory=dict)
    # The PE and the time of the send, by message.
    sends: dict[int, tuple[int, int]] = field(default_factory=dict)
    # How many messages there were, by the power of two of their bytes.
    message_sizes: dict[int, int] = field(default_factory=dict)
    num_events: int = 0


def read_trace(path: Path) -> Trace:
    """Reads a trace.

    Raises:
        TraceError: it cannot be read, or is no trace of Weft.
    """
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
    except ImportError as error:
        raise TraceError("the package perfetto is missing: pip install 'weft[trace]'") from error
    reader = _Reader(schema)
    try:
        with path.open("rb") as file:
            for chunk in _chunks(file):
                reader.read(chunk)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    except _MalformedError as error:
        raise TraceError(f"{path} is no trace of Weft: {error}") from error
    if reader.trace.num_events == 0:
        raise TraceError(f"{path} has no events of Weft")
    return reader.trace


class _MalformedError(Exception):
    pass


def _chunks(file: Any) -> Iterator[bytes]:
    """Parts of a file that have whole packets."""
    if file.seek(0, 2) == 0:
        return
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        begin = end = 0
        while end < len(data):
            end = _end_of_packet(data, end)
            if end - begin >= _CHUNK_BYTES or end == len(data):
                yield data[begin:end]
                begin = end


def _end_of_packet(data: mmap.mmap, at: int) -> int:
    """Where the packet ends that begins at `at`: with a tag, and its length in groups of seven bits."""
    if data[at] != 0x0A:
        raise _MalformedError(f"no packet begins at byte {at}")
    length = shift = 0
    while True:
        at += 1
        if at >= len(data) or shift > 28:
            raise _MalformedError("its end is missing")
        length |= (data[at] & 0x7F) << shift
        shift += 7
        if data[at] < 0x80:
            break
    end = at + 1 + length
    if end > len(data):
        raise _MalformedError("its end is missing")
    return end


class _Sequence:
    """What the packets of a PE have said so far."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.annotations: dict[int, str] = {}
        self.tracks: dict[int, str] = {}
        self.open_slices: list[int] = []
        self.open_transfers: dict[int, tuple[str, int, int]] = {}
        self.categories: dict[int, str] = {}
        self.open_calls: dict[int, list[tuple[str, int]]] = {}


class _Reader:
    def __init__(self, schema: Any) -> None:
        self.trace = Trace()
        self._schema = schema
        self._sequences: dict[int, _Sequence] = {}

    def read(self, chunk: bytes) -> None:
        from google.protobuf.message import DecodeError

        try:
            packets = self._schema.Trace.FromString(chunk).packet
        except DecodeError as error:
            raise _MalformedError(str(error)) from error
        for packet in packets:
            pe = packet.trusted_packet_sequence_id - 1
            sequence = self._sequences.setdefault(pe, _Sequence())
            if packet.HasField("track_event"):
                self._add(pe, sequence, packet.timestamp, packet.track_event)
            elif packet.HasField("track_descriptor"):
                sequence.tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
            elif packet.HasField("interned_data"):
                for name in packet.interned_data.event_names:
                    sequence.names[name.iid] = name.name
                for name in packet.interned_data.event_categories:
                    sequence.categories[name.iid] = name.name
                for name in packet.interned_data.debug_annotation_names:
                    sequence.annotations[name.iid] = name.name

    def _add(self, pe: int, sequence: _Sequence, time_ns: int, event: Any) -> None:
        trace = self.trace.pes.setdefault(pe, PeTrace(begin_ns=time_ns))
        trace.end_ns = time_ns
        self.trace.num_events += 1
        notes = {sequence.annotations.get(one.name_iid): one.uint_value for one in event.debug_annotations}
        category = sequence.categories.get(event.category_iids[0]) if event.category_iids else None
        if category == _CALLS or event.track_uuid in sequence.open_calls:
            self._add_call(trace, sequence, time_ns, event)
        elif event.track_uuid:
            self._add_transfer(trace, sequence, time_ns, event, notes)
        elif event.type == self._schema.TrackEvent.TYPE_SLICE_END:
            if sequence.open_slices:
                trace.slices.end_ns[sequence.open_slices.pop()] = time_ns
        elif (name := sequence.names.get(event.name_iid, "?")) == _SEND:
            size_class = notes.get("bytes", 0).bit_length()
            self.trace.message_sizes[size_class] = self.trace.message_sizes.get(size_class, 0) + 1
            for message in event.flow_ids:
                self.trace.sends[message] = pe, time_ns
        else:
            slices = trace.slices
            if name != _MESSAGE:
                sequence.open_slices.append(len(slices.start_ns))
            slices.start_ns.append(time_ns)
            slices.end_ns.append(time_ns)
            slices.name.append(name)
            slices.element.append(notes.get("element", 0))
            slices.waited_ns.append(notes.get("waited (ns)", -1))
            slices.message.append(event.terminating_flow_ids[0] if event.terminating_flow_ids else 0)

    def _add_call(self, trace: PeTrace, sequence: _Sequence, time_ns: int, event: Any) -> None:
        open_calls = sequence.open_calls.setdefault(event.track_uuid, [])
        if event.type != self._schema.TrackEvent.TYPE_SLICE_END:
            open_calls.append((sequence.names.get(event.name_iid, "?"), time_ns))
        elif open_calls:
            function, begin_ns = open_calls.pop()
            calls = trace.calls.setdefault(function, Calls())
            calls.count += 1
            calls.time_ns += time_ns - begin_ns
            calls.longest_ns = max(calls.longest_ns, time_ns - begin_ns)

    def _add_transfer(
        self, trace: PeTrace, sequence: _Sequence, time_ns: int, event: Any, notes: dict[str | None, int]
    ) -> None:
        if event.type != self._schema.TrackEvent.TYPE_SLICE_END:
            path = sequence.tracks.get(event.track_uuid, "?")
            sequence.open_transfers[event.track_uuid] = path, time_ns, notes.get("bytes", 0)
            return
        begun = sequence.open_transfers.pop(event.track_uuid, None)
        if begun is None:
            return
        path, begin_ns, size_bytes = begun
        transfers = trace.transfers.setdefault(path, Transfers())
        transfers.count += 1
        transfers.size_bytes += size_bytes
        transfers.time_ns += time_ns - begin_ns
