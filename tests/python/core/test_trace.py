"""What `weft run --trace` writes, read with the schema of Perfetto."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from .conftest import RunJob
from .trace_processor import query

pytest.importorskip("perfetto")
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from weft._trace.elements import _sends_by_part
from weft._trace.reading import (
    IDLE_PLACE,
    MESSAGE_PLACE,
    PeTrace,
    Sends,
    Slices,
    TraceError,
    match,
    read_trace,
)
from weft._trace.reading import Trace as ReadTrace
from weft._trace.summary import IN_MESSAGES, busy_share, critical_path, longest_waits, methods_of, times_of

ROUNDS = 100


@dataclass
class Contents:
    """A trace, by PE."""

    tracks: dict[int, str] = field(default_factory=dict)
    slices: Counter[tuple[int, str]] = field(default_factory=Counter)
    transfers: Counter[tuple[int, str, str]] = field(default_factory=Counter)
    begun_arrows: Counter[int] = field(default_factory=Counter)
    ended_arrows: Counter[int] = field(default_factory=Counter)
    queue_lengths: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))


def read(file: Path) -> Contents:
    trace = Trace()
    trace.ParseFromString(file.read_bytes())
    found = Contents()
    names: dict[tuple[int, int], str] = {}
    main_tracks: dict[int, int] = {}
    open_slices: Counter[int] = Counter()
    times: dict[int, int] = {}
    for packet in trace.packet:
        pe = packet.trusted_packet_sequence_id - 1
        for name in packet.interned_data.event_names:
            names[pe, name.iid] = name.name
        if packet.HasField("trace_packet_defaults"):
            main_tracks[pe] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            found.tracks[track.uuid] = track.name or track.thread.thread_name or track.process.process_name
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        on_main_track = not event.HasField("track_uuid")
        track_uuid = main_tracks[pe] if on_main_track else event.track_uuid
        assert track_uuid in found.tracks
        assert times.get(pe, 0) <= packet.timestamp, "the events of a PE are in order"
        times[pe] = packet.timestamp
        if event.type == TrackEvent.TYPE_COUNTER:
            found.queue_lengths[pe].append(event.counter_value)
            continue
        found.begun_arrows.update(event.flow_ids)
        found.ended_arrows.update(event.terminating_flow_ids)
        if event.type == TrackEvent.TYPE_SLICE_END:
            open_slices[track_uuid] -= 1
            assert open_slices[track_uuid] >= 0
        elif on_main_track:
            found.slices[pe, names[pe, event.name_iid]] += 1
        else:
            found.transfers[pe, found.tracks[track_uuid], names[pe, event.name_iid]] += 1
        open_slices[track_uuid] += event.type == TrackEvent.TYPE_SLICE_BEGIN
    # What an idle PE waits for at the end never comes.
    assert all(count in (0, 1) for count in open_slices.values())
    return found


def test_methods_waits_messages_and_transfers(run_job: RunJob, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    ended = run_job(2, "traced.py", str(ROUNDS), environment={"WEFT_TRACE": str(file)})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [one.name for one in tmp_path.iterdir()] == ["trace"]
    trace = read(file)
    assert {name.split(",")[0] for name in trace.tracks.values()} >= {"PE 0", "PE 1"}
    assert trace.slices[0, "Cell.token"] == ROUNDS // 2 + 1
    assert trace.slices[1, "Cell.token"] == ROUNDS // 2
    for pe in (0, 1):
        assert trace.slices[pe, "Cell.wait"] == 2, "before and behind the wait"
        assert trace.slices[pe, "idle"] > 0
    # Before and behind each of the three awaits of main.
    assert trace.slices[0, "main"] >= 4
    assert min(trace.queue_lengths[0]) == 0
    sent = [path for (pe, path, _) in trace.transfers if pe == 0]
    assert sent, "the channel's message"
    # Each token from PE to PE is an arrow. Control messages have none.
    arrows = trace.begun_arrows & trace.ended_arrows
    assert sum(arrows.values()) >= ROUNDS
    # The last messages may still be under way when the job ends.
    assert set(trace.ended_arrows) <= set(trace.begun_arrows)
    assert set(trace.begun_arrows.values()) == {1}


def test_one_process_and_an_exception(run_job: RunJob, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    ended = run_job(1, "traced.py", "4", "fail", environment={"WEFT_TRACE": str(file)})
    assert ended.returncode == 1
    assert "the trace is written all the same" in ended.stderr
    assert read(file).slices[0, "Cell.token"] == 5


def test_a_full_ring_keeps_the_last_events_and_says_so(run_job: RunJob, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    limits = {"WEFT_TRACE": str(file), "WEFT_TRACE_MIB": "1"}
    ended = run_job(1, "traced.py", "20000", environment=limits)
    assert ended.returncode == 0
    assert "weft: PE 0: the trace lacks the first " in ended.stderr
    assert 0 < read(file).slices[0, "Cell.token"] < 20000


def test_files_and_settings_that_cannot_be(run_job: RunJob, tmp_path: Path) -> None:
    ended = run_job(2, "traced.py", "1", environment={"WEFT_TRACE": str(tmp_path / "no" / "trace")})
    assert ended.returncode == 2
    assert "No such file or directory" in ended.stderr
    limits = {"WEFT_TRACE": str(tmp_path / "trace"), "WEFT_TRACE_MIB": "much"}
    ended = run_job(1, "traced.py", "1", environment=limits)
    assert ended.returncode == 1
    assert "WEFT_TRACE_MIB is 'much': give a number of MiB from 1 to 1048576" in ended.stderr


def weft_trace(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "weft", "trace", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_summary_of_a_job(run_job: RunJob, tmp_path: Path) -> None:
    file, numbers, plot = tmp_path / "trace", tmp_path / "numbers.json", tmp_path / "plot.png"
    assert run_job(2, "traced.py", str(ROUNDS), environment={"WEFT_TRACE": str(file)}).returncode == 0
    ended = weft_trace(file, "--json", numbers, "--plot", plot)
    assert (ended.returncode, ended.stderr) == (0, "")
    for title in ("Time of the PEs", "Cell.token", "The longest waits", "The chain of causes", "Transfers"):
        assert title in ended.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")
    found = json.loads(numbers.read_text())
    assert found["methods"]["Cell.token"]["runs"] == ROUNDS + 1
    wait = found["methods"]["Cell.wait"]
    assert (wait["runs"], wait["parts"]) == (2, 4)
    assert {"main", "Cell.wait", "Cell.exchange"} >= {one["method"] for one in found["waits"]}
    for times in found["pes"].values():
        assert 0 < times["methods_ns"] + times["idle_ns"] <= times["total_ns"]
    path = found["critical_path"]
    assert path["Cell.token"] > 0
    assert path[IN_MESSAGES] > 0
    assert sum(counts["other_pes"] for counts in found["message_sizes"].values()) >= ROUNDS


def test_a_damaged_trace_is_refused_or_read_in_part(run_job: RunJob, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    assert run_job(1, "traced.py", "4", environment={"WEFT_TRACE": str(file)}).returncode == 0
    whole = file.read_bytes()
    num_events = read_trace(file).num_events
    for size in range(0, len(whole), 7):
        file.write_bytes(whole[:size])
        try:
            assert 0 < read_trace(file).num_events <= num_events
        except TraceError:
            pass
    file.write_text("no trace")
    ended = weft_trace(file)
    assert ended.returncode == 2
    assert ended.stderr == f"weft trace: {file} is no trace of Weft: no packet begins at byte 0\n"
    ended = weft_trace(tmp_path / "nothing")
    assert ended.stderr == f"weft trace: {tmp_path / 'nothing'}: No such file or directory\n"


class SliceRows:
    """Slices, row by row."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, ...]] = []

    def add(self, name: int, start_ns: int, end_ns: int, message: int = 0, waited_ns: int = -1) -> None:
        self._rows.append((start_ns, end_ns, name, 0, waited_ns, message, 1))

    def slices(self) -> Slices:
        columns = [np.array(column, np.int64) for column in zip(*self._rows, strict=True)]
        columns[5] = columns[5].astype(np.uint64)
        return Slices(*columns)


def test_the_numbers_of_a_summary() -> None:
    names = [*ReadTrace().names, "first", "sends", "called"]
    first, sends, called = range(2, 5)
    here, there = SliceRows(), SliceRows()
    here.add(first, 0, 10)
    here.add(sends, 20, 50)
    here.add(IDLE_PLACE, 50, 100)
    there.add(IDLE_PLACE, 0, 60)
    there.add(called, 70, 170, message=7)
    there.add(IDLE_PLACE, 170, 180)
    there.add(first, 180, 190, waited_ns=30)
    pes = {
        0: PeTrace(here.slices(), begin_ns=0, end_ns=100),
        1: PeTrace(there.slices(), begin_ns=0, end_ns=200),
    }
    sent = Sends(np.array([7], np.uint64), np.array([0]), np.array([40]))
    trace = ReadTrace(pes, names, sent)
    assert critical_path(trace) == {
        "called": 100,
        IN_MESSAGES: 30,
        "(outside of entry methods)": 10 + 10,
        "first": 10 + 10,
        "sends": 20,
    }
    times = times_of(trace.pes[1])
    assert (times.total_ns, times.methods_ns, times.idle_ns) == (200, 110, 70)
    of_first = methods_of(trace)["first"]
    assert (of_first.runs, of_first.parts, of_first.time_ns, of_first.grains) == (1, 2, 20, {4: 2})
    (wait,) = longest_waits(trace)
    assert (wait.waited_ns, wait.pe, wait.method, wait.resumed_ns) == (30, 1, "first", 180)
    assert busy_share(trace.pes[0], 4, 0, 100) == pytest.approx([15 / 25, 1, 0, 0])


def test_slices_that_are_nested_lost_or_open() -> None:
    # An end without a begin; a slice with one inside; one that does not end.
    begins = np.array([False, True, True, False, False, True])
    pairs = match(begins)
    found = {
        int(begin): (int(end), int(depth))
        for begin, end, depth in zip(pairs.begin, pairs.end, pairs.depth, strict=True)
    }
    assert found == {1: (4, 1), 2: (3, 2), 5: (-1, 1)}


def test_operations_and_work_of_devices(run_job: RunJob, tmp_path: Path) -> None:
    file, numbers = tmp_path / "trace", tmp_path / "numbers.json"
    checkpoint = str(tmp_path / "checkpoint")
    ended = run_job(2, "traced_operations.py", checkpoint, environment={"WEFT_TRACE": str(file)})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert weft_trace(file, "--json", numbers).returncode == 0
    found = json.loads(numbers.read_text())
    for pe in ("0", "1"):
        operations = found["operations"][pe]
        assert operations["load balancing: sync point"]["count"] == 1
        assert operations["collectives: reduction"]["count"] >= 1
        assert operations["checkpoints: write"]["count"] == 1
    assert sum(pe["num_arrived"] for pe in found["pes"].values()) > 0
    work = [use for of_pe in found["device_work"].values() for use in of_pe.items()]
    assert {name for name, _ in work} == {f"emulated:{pe}, stream 1, Cell.iterate" for pe in (0, 1)}
    assert sum(use["count"] for _, use in work) == 4
    assert all(use["longest_ns"] >= 9e6 for _, use in work)


SLICES = """
    select slice.name, thread.name as track, count() as num, min(dur) as shortest from slice
    join thread_track on slice.track_id = thread_track.id join thread using (utid) group by 1, 2
"""
QUEUE = """
    select count() as num from counter join process_counter_track as track on track.id = track_id
    where track.name = 'queue'
"""
BACKWARDS = """
    select count() as num from flow join slice as sent on sent.id = slice_out
    join slice as called on called.id = slice_in where called.ts < sent.ts
"""


def test_the_trace_processor_of_perfetto_reads_it(run_job: RunJob, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    assert run_job(2, "traced.py", str(ROUNDS), environment={"WEFT_TRACE": str(file)}).returncode == 0
    slices, arrows, backwards, queue, errors = query(
        file,
        SLICES,
        "select count() as num from flow",
        BACKWARDS,
        QUEUE,
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    )
    assert errors == []
    found = {(row["name"], row["track"]): row["num"] for row in slices}
    assert found["Cell.token", "PE 0"] == ROUNDS // 2 + 1
    assert found["Cell.token", "PE 1"] == ROUNDS // 2
    assert found["Cell.wait", "PE 1"] == 2
    assert found["main", "PE 0"] >= 4
    assert arrows[0]["num"] >= ROUNDS
    assert backwards == [{"num": 0}]
    assert queue[0]["num"] > 0


def test_a_track_for_each_element(run_job: RunJob, tmp_path: Path) -> None:
    file, elements = tmp_path / "trace", tmp_path / "elements"
    assert run_job(2, "traced.py", str(ROUNDS), environment={"WEFT_TRACE": str(file)}).returncode == 0
    ended = weft_trace(file, "--elements", elements)
    assert (ended.returncode, ended.stderr) == (0, "")
    trace = Trace.FromString(elements.read_bytes())
    tracks = {
        packet.track_descriptor.uuid: packet.track_descriptor.name
        for packet in trace.packet
        if packet.HasField("track_descriptor")
    }
    assert {"main", "Cell[0]", "Cell[1]"} <= set(tracks.values())
    events = [packet.track_event for packet in trace.packet if packet.HasField("track_event")]
    tokens = Counter(tracks[event.track_uuid] for event in events if event.name == "Cell.token")
    assert tokens == {"Cell[0]": ROUNDS // 2 + 1, "Cell[1]": ROUNDS // 2}
    sent = {flow for event in events for flow in event.flow_ids}
    called = {flow for event in events for flow in event.terminating_flow_ids}
    assert len(sent & called) >= ROUNDS
    slices, arrows, errors = query(
        elements,
        "select track.name as track, count() as num from slice join track on track.id = track_id "
        "where slice.name = 'Cell.token' group by 1",
        "select count() as num from flow",
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    )
    assert errors == []
    assert {row["track"]: row["num"] for row in slices} == tokens
    assert arrows[0]["num"] >= ROUNDS


def test_a_send_belongs_to_the_innermost_part_around_it() -> None:
    slices = Slices(
        start_ns=np.array([0, 2, 6]),
        end_ns=np.array([10, 4, 6]),
        name=np.array([2, 3, MESSAGE_PLACE]),
        depth=np.array([1, 2, 2]),
    )
    sends = Sends(
        message=np.array([30, 31, 32, 33], np.uint64),
        pe=np.zeros(4, int),
        time_ns=np.array([3, 5, 7, 11]),
    )
    trace = ReadTrace(pes={0: PeTrace(slices=slices)}, sends=sends)
    assert _sends_by_part(trace) == {(0, 1): [(3, 30)], (0, 0): [(5, 31), (7, 32)]}
