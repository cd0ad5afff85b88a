"""Reads the file of `weft run --trace`: the packets that src/job/trace/perfetto_trace.cpp writes."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft._trace import packets
from weft._trace.packets import Events, MalformedError

IDLE, MESSAGE = "idle", "message"
# Their places in Trace.names.
IDLE_PLACE, MESSAGE_PLACE = 0, 1
_SEND = "send"

Times = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint64]


class TraceError(Exception):
    """The file is no trace of Weft."""


def _none() -> Any:
    return np.zeros(0, np.int64)


@dataclass
class Slices:
    """Parts of entry methods, times of idleness, and messages that called no method; by their starts.

    Messages have no length.
    """

    start_ns: Times = field(default_factory=_none)
    end_ns: Times = field(default_factory=_none)
    # The place of the name in Trace.names.
    name: Indices = field(default_factory=_none)
    element: Indices = field(default_factory=_none)
    # How long the method had waited before this part; -1: this is its first part.
    waited_ns: Times = field(default_factory=_none)
    # The message that caused it; 0 if none is known.
    message: Numbers = field(default_factory=lambda: np.zeros(0, np.uint64))
    # 1; more for a part that ran inside another one.
    depth: Indices = field(default_factory=_none)

    @property
    def length_ns(self) -> Times:
        """How long each one took."""
        return self.end_ns - self.start_ns


@dataclass
class Uses:
    """Things of one name: calls of a function of MPI, transfers by a path, operations, work of a device."""

    count: int = 0
    time_ns: int = 0
    longest_ns: int = 0
    size_bytes: int = 0

    def add(self, lengths_ns: Times, size_bytes: int = 0) -> None:
        """Adds things that took so long."""
        self.count += len(lengths_ns)
        self.time_ns += int(lengths_ns.sum())
        self.longest_ns = max(self.longest_ns, int(lengths_ns.max(initial=0)))
        self.size_bytes += size_bytes


@dataclass
class PeTrace:
    """What a PE did."""

    slices: Slices = field(default_factory=Slices)
    transfers: dict[str, Uses] = field(default_factory=dict)
    calls: dict[str, Uses] = field(default_factory=dict)
    # By "collectives: reduction".
    operations: dict[str, Uses] = field(default_factory=dict)
    # By the stream and the entry method.
    device_work: dict[tuple[str, str], Uses] = field(default_factory=dict)
    longest_queue: int = 0
    num_arrived: int = 0  # elements that moved here
    begin_ns: int = 0
    end_ns: int = 0


@dataclass
class Sends:
    """Messages that were sent, by their numbers."""

    message: Numbers = field(default_factory=lambda: np.zeros(0, np.uint64))
    pe: Indices = field(default_factory=_none)
    time_ns: Times = field(default_factory=_none)


@dataclass
class Trace:
    """What a job did."""

    pes: dict[int, PeTrace] = field(default_factory=dict)
    names: list[str] = field(default_factory=lambda: [IDLE, MESSAGE])
    sends: Sends = field(default_factory=Sends)
    # How many messages there were, by the power of two of their bytes: to the own PE, and to other PEs.
    message_sizes: dict[int, list[int]] = field(default_factory=dict)
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
    reader = _Reader()
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) > 0:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    for events, others in packets.decode(data, schema):
                        reader.read(events, others)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    except MalformedError as error:
        raise TraceError(f"{path} is no trace of Weft: {error}") from error
    trace = reader.trace()
    if trace.num_events == 0:
        raise TraceError(f"{path} has no events of Weft")
    return trace


class Pairs(NamedTuple):
    """Slices of a track: their places among the events of the track."""

    begin: Indices
    end: Indices  # -1: it has not ended
    depth: Indices  # 1; more inside of others


def match(is_begin: npt.NDArray[np.bool_]) -> Pairs:
    """Finds the end of each slice of a track. Ends without a begin are left out."""
    depth = np.cumsum(np.where(is_begin, 1, -1))
    lowest = np.minimum(np.minimum.accumulate(depth), 0)
    is_lost = ~is_begin & (np.diff(lowest, prepend=0) < 0)
    level = depth - lowest + ~is_begin
    rows = np.flatnonzero(~is_lost)
    # A level has a begin and an end by turns.
    rows = rows[np.argsort(level[rows], kind="stable")]
    begins = np.flatnonzero(is_begin[rows])
    behind = np.append(rows, -1)[begins + 1]
    has_ended = (behind >= 0) & ~is_begin[behind]
    begin = rows[begins]
    return Pairs(begin, np.where(has_ended, behind, -1), level[begin])


class _Columns:
    """The events of a PE. A trace has many, so the columns are narrow."""

    def __init__(self) -> None:
        self._parts: dict[str, list[npt.NDArray[Any]]] = {}
        self.tracks: dict[int, str] = {}
        self.names: dict[int, str] = {}

    def add(self, events: Events, rows: npt.NDArray[np.bool_]) -> None:
        def keep(column: str, values: npt.NDArray[Any]) -> None:
            self._parts.setdefault(column, []).append(values[rows])

        keep("time_ns", events.time_ns)
        keep("type", events.type)
        keep("category", events.category)
        keep("track", events.track.astype(np.uint32))
        keep("name", events.name.astype(np.uint32))
        keep("value", events.value)
        keep("to_pe", events.to_pe.astype(np.int32))
        keep("flow", events.begun_flow | events.ended_flow)
        keep("waited_ns", np.where(events.waited_ns == packets.NO_WAIT, 0, events.waited_ns + np.uint64(1)))

    def take(self, column: str) -> npt.NDArray[Any]:
        """The whole column, which is not kept."""
        return np.concatenate(self._parts.pop(column))


class _Reader:
    def __init__(self) -> None:
        self._trace = Trace()
        self._pe = -1
        self._columns: dict[int, _Columns] = {}
        self._sends: list[tuple[Numbers, Indices, Times]] = []

    def read(self, events: Events, others: list[Any]) -> None:
        for packet in others:
            columns = self._columns_of(packet.trusted_packet_sequence_id - 1)
            if packet.HasField("track_descriptor"):
                columns.tracks[packet.track_descriptor.uuid & 0xFFFFFFFF] = packet.track_descriptor.name
            for name in packet.interned_data.event_names:
                columns.names[name.iid] = name.name
        for pe in np.unique(events.pe):
            self._columns_of(int(pe)).add(events, events.pe == pe)
        self._trace.num_events += len(events.pe)

    def _columns_of(self, pe: int) -> _Columns:
        return self._columns.setdefault(pe, _Columns())

    def trace(self) -> Trace:
        """What has been read. Called once."""
        places = {name: i for i, name in enumerate(self._trace.names)}
        for pe in sorted(self._columns):
            columns = self._columns.pop(pe)
            if "time_ns" in columns._parts:
                self._trace.pes[pe] = _PeReader(self._trace, self._sends, places, columns, pe).read()
        self._trace.names = list(places)
        if self._sends:
            message, of_pe, time_ns = (np.concatenate(column) for column in zip(*self._sends, strict=True))
            order = np.argsort(message, kind="stable")
            self._trace.sends = Sends(message[order], of_pe[order], time_ns[order])
        return self._trace


class _PeReader:
    def __init__(
        self,
        trace: Trace,
        sends: list[tuple[Numbers, Indices, Times]],
        places: dict[str, int],
        columns: _Columns,
        pe: int,
    ) -> None:
        self._trace, self._sends, self._pe, self._tracks = trace, sends, pe, columns.tracks
        take = columns.take
        self._time_ns, self._type, self._category = take("time_ns"), take("type"), take("category")
        self._track, self._value, self._to_pe = take("track"), take("value"), take("to_pe")
        self._flow, self._waited_ns = take("flow"), take("waited_ns")
        # From the numbers of the PE to places in Trace.names.
        of_number = np.zeros(max(columns.names, default=0) + 1, np.int64)
        for number, name in columns.names.items():
            of_number[number] = places.setdefault(name, len(places))
        self._name = of_number[np.minimum(take("name"), len(of_number) - 1)]
        self._names = list(places)
        self._places = places

    def read(self) -> PeTrace:
        times = self._time_ns
        # Work of devices is written when it has ended, with earlier times.
        found = PeTrace(begin_ns=int(times.min()), end_ns=int(times.max()))
        main = np.flatnonzero(self._track == 0)
        found.slices = self._slices(main, found.end_ns)
        self._read_messages(main)
        found.num_arrived = int(
            np.count_nonzero(
                (self._category == packets.MOVES) & (self._name == self._places.get("element arrives"))
            )
        )
        for rows in self._other_tracks():
            self._read_track(found, rows)
        return found

    def _slices(self, main: Indices, end_ns: int) -> Slices:
        kinds = self._type[main]
        on_track = main[(kinds == packets.SLICE_BEGIN) | (kinds == packets.SLICE_END)]
        pairs = match(self._type[on_track] == packets.SLICE_BEGIN)
        begin = on_track[pairs.begin]
        end = np.where(pairs.end >= 0, self._time_ns[on_track[pairs.end]], end_ns)
        instants = main[(kinds == packets.INSTANT) & (self._name[main] == MESSAGE_PLACE)]
        rows = np.concatenate([begin, instants])
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        return Slices(
            start_ns=self._time_ns[rows],
            end_ns=np.concatenate([end, self._time_ns[instants]])[order],
            name=self._name[rows],
            element=self._value[rows].astype(np.int64),
            waited_ns=self._waited_ns[rows].astype(np.int64) - 1,
            message=self._flow[rows],
            depth=np.concatenate([pairs.depth, np.ones(len(instants), np.int64)])[order],
        )

    def _read_messages(self, main: Indices) -> None:
        rows = main[
            (self._category[main] == packets.MESSAGES) & (self._name[main] == self._places.get(_SEND, -1))
        ]
        self._sends.append((self._flow[rows], np.full(len(rows), self._pe), self._time_ns[rows]))
        size_classes = np.frexp(self._value[rows].astype(np.float64))[1]
        is_for_others = (self._to_pe[rows] != self._pe).astype(np.int64)
        for size_class, other, count in _counts(size_classes, is_for_others):
            self._trace.message_sizes.setdefault(size_class, [0, 0])[other] += count

    def _other_tracks(self) -> Iterator[Indices]:
        """The events of each track but the main one."""
        rows = np.flatnonzero(self._track != 0)
        rows = rows[np.argsort(self._track[rows], kind="stable")]
        yield from (
            part for part in np.split(rows, np.flatnonzero(np.diff(self._track[rows])) + 1) if part.size
        )

    def _read_track(self, found: PeTrace, rows: Indices) -> None:
        if self._type[rows[0]] == packets.COUNTER:
            found.longest_queue = max(found.longest_queue, int(self._value[rows].max()))
            return
        pairs = match(self._type[rows] == packets.SLICE_BEGIN)
        has_ended = pairs.end >= 0
        begin, end = rows[pairs.begin[has_ended]], rows[pairs.end[has_ended]]
        if begin.size == 0:
            return
        lengths_ns = self._time_ns[end] - self._time_ns[begin]
        track = self._tracks.get(int(self._track[rows[0]]), "?")
        category = self._category[begin[0]]
        if category == packets.TRANSFERS:
            size_bytes = int(self._value[begin].sum())
            found.transfers.setdefault(track, Uses()).add(lengths_ns, size_bytes)
            return
        for place in np.unique(self._name[begin]):
            name, lengths = self._names[place], lengths_ns[self._name[begin] == place]
            if category == packets.CALLS:
                found.calls.setdefault(name, Uses()).add(lengths)
            elif category == packets.SPANS:
                found.operations.setdefault(f"{track}: {name}", Uses()).add(lengths)
            elif category == packets.DEVICE_WORK:
                found.device_work.setdefault((track, name), Uses()).add(lengths)


def _counts(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Iterator[tuple[int, int, int]]:
    """How often there is each pair."""
    pairs, counts = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    for (one, other), count in zip(pairs.T, counts, strict=True):
        yield int(one), int(other), int(count)
