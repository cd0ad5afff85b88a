"""`weft trace --elements`: a trace with a track for each element, made of one with tracks of PEs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft._trace.reading import IDLE_PLACE, MESSAGE_PLACE, Trace

_ROOT = 1
_SEQUENCE = 1


class _Owner(NamedTuple):
    """Whose track it is: main, or an element of the collections of a class."""

    name: str
    number: int


def write_elements(trace: Trace, file: Path) -> None:
    """Writes the file: a track for each element, on whatever PE it is, with the arrows of messages.

    Collections of one class share their tracks, because a trace does not tell them apart. Elements have their
    linear numbers. Raises: OSError.
    """
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    parts: dict[_Owner, list[tuple[int, int]]] = {}  # PE, place in its slices
    for pe, one in sorted(trace.pes.items()):
        slices = one.slices
        for place in np.flatnonzero((slices.name != IDLE_PLACE) & (slices.name != MESSAGE_PLACE)).tolist():
            owner = _owner(trace.names[slices.name[place]], int(slices.element[place]))
            parts.setdefault(owner, []).append((pe, place))
    sends = _sends_by_part(trace)
    with file.open("wb") as out:
        _Writer(schema, out).describe(_ROOT, "elements", None)
        for number, owner in enumerate(sorted(parts)):
            writer = _Writer(schema, out, _ROOT + 1 + number)
            writer.describe(writer.track, owner.name + (f"[{owner.number}]" if owner.number >= 0 else ""))
            for pe, place in parts[owner]:
                writer.write_part(trace, pe, place, sends.get((pe, place), ()))


def _owner(method: str, element: int) -> _Owner:
    name = method.replace("::", ".").rpartition(".")[0]
    return _Owner(name, element) if name else _Owner(method, -1)


def _sends_by_part(trace: Trace) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The times and numbers of the messages that each part has sent, by PE and place."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for pe, one in trace.pes.items():
        rows = np.flatnonzero(trace.sends.pe == pe)
        times = trace.sends.time_ns[rows]
        # The innermost part that contains it.
        slices, places = one.slices, np.full(len(times), -1)
        is_part = (slices.name != IDLE_PLACE) & (slices.name != MESSAGE_PLACE)
        for depth in range(1, int(slices.depth.max(initial=0)) + 1):
            of_depth = np.flatnonzero(is_part & (slices.depth == depth))
            if len(of_depth) > 0:
                at = np.searchsorted(slices.start_ns[of_depth], times, side="right") - 1
                is_inside = (at >= 0) & (times <= slices.end_ns[of_depth[at]])
                places = np.where(is_inside, of_depth[at], places)
        for place, time_ns, message in zip(
            places.tolist(), times.tolist(), trace.sends.message[rows].tolist(), strict=True
        ):
            if place >= 0:
                found.setdefault((pe, place), []).append((time_ns, message))
    return found


class _Writer:
    """Writes the packets of one track."""

    def __init__(self, schema: Any, out: Any, track: int = 0) -> None:
        self._schema, self._out, self.track = schema, out, track

    def describe(self, track: int, name: str, parent: int | None = _ROOT) -> None:
        packet = self._schema.TracePacket(trusted_packet_sequence_id=_SEQUENCE)
        packet.track_descriptor.uuid, packet.track_descriptor.name = track, name
        if parent is not None:
            packet.track_descriptor.parent_uuid = parent
        self._write(packet)

    def write_part(self, trace: Trace, pe: int, place: int, sends: Any) -> None:
        slices, types = trace.pes[pe].slices, self._schema.TrackEvent
        begin = self._event(int(slices.start_ns[place]), types.TYPE_SLICE_BEGIN)
        begin.track_event.name = trace.names[slices.name[place]]
        begin.track_event.debug_annotations.add(name="PE", int_value=pe)
        if message := int(slices.message[place]):
            begin.track_event.terminating_flow_ids.append(message)
        self._write(begin)
        for time_ns, message in sends:
            send = self._event(time_ns, types.TYPE_INSTANT)
            send.track_event.name = "send"
            if message:
                send.track_event.flow_ids.append(message)
            self._write(send)
        self._write(self._event(int(slices.end_ns[place]), types.TYPE_SLICE_END))

    def _event(self, time_ns: int, kind: int) -> Any:
        packet = self._schema.TracePacket(trusted_packet_sequence_id=_SEQUENCE, timestamp=time_ns)
        packet.track_event.type, packet.track_event.track_uuid = kind, self.track
        return packet

    def _write(self, packet: Any) -> None:
        self._out.write(self._schema.Trace(packet=[packet]).SerializeToString())
