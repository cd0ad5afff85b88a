"""What a trace says in short: where the time went, by PE and by entry method, and what the job waited for."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from weft._trace.reading import IDLE, PeTrace, Slices, Trace

NUM_WAITS = 10
IN_MESSAGES = "(messages under way)"
ELSEWHERE = "(outside of entry methods)"


@dataclass
class Method:
    """The parts of an entry method between waits."""

    runs: int = 0
    parts: int = 0
    time_ns: int = 0
    longest_ns: int = 0
    # How many parts there were, by the power of two of their nanoseconds: the grain sizes.
    grains: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Wait:
    """A wait of an entry method."""

    waited_ns: int
    pe: int
    method: str
    element: int
    resumed_ns: int


@dataclass
class PeTimes:
    """How a PE spent its time. What is in none of both is Weft's own, and `main`'s."""

    total_ns: int = 0
    methods_ns: int = 0
    idle_ns: int = 0


def times_of(trace: PeTrace) -> PeTimes:
    """The times of a PE. One entry method runs at a time, so slices do not overlap."""
    times = PeTimes(trace.end_ns - trace.begin_ns)
    slices = trace.slices
    for name, begin_ns, end_ns in zip(slices.name, slices.start_ns, slices.end_ns, strict=True):
        if name == IDLE:
            times.idle_ns += end_ns - begin_ns
        else:
            times.methods_ns += end_ns - begin_ns
    return times


def methods_of(trace: Trace) -> dict[str, Method]:
    """All entry methods, the one with the most time first."""
    methods: dict[str, Method] = {}
    for one in trace.pes.values():
        slices = one.slices
        for i, name in enumerate(slices.name):
            time_ns = slices.end_ns[i] - slices.start_ns[i]
            if name == IDLE or (time_ns == 0 and slices.name[i] == "message"):
                continue
            method = methods.setdefault(name, Method())
            method.parts += 1
            method.runs += slices.waited_ns[i] < 0
            method.time_ns += time_ns
            method.longest_ns = max(method.longest_ns, time_ns)
            grain = time_ns.bit_length()
            method.grains[grain] = method.grains.get(grain, 0) + 1
    return dict(sorted(methods.items(), key=lambda item: -item[1].time_ns))


def longest_waits(trace: Trace, count: int = NUM_WAITS) -> list[Wait]:
    """The longest waits of entry methods, the longest first."""
    waits = (
        Wait(waited_ns, pe, one.slices.name[i], one.slices.element[i], one.slices.start_ns[i])
        for pe, one in trace.pes.items()
        for i, waited_ns in enumerate(one.slices.waited_ns)
        if waited_ns > 0
    )
    return heapq.nlargest(count, waits, key=lambda wait: wait.waited_ns)


def critical_path(trace: Trace) -> dict[str, int]:
    """Nanoseconds by entry method on the chain of causes that ends with the last entry method of the job.

    The cause of a slice is the message that called it, and of that the entry method that sent it. Without a
    message it is what the PE did before. IN_MESSAGES is the time from a send until what it called began.
    """
    last = max(
        ((one.slices.end_ns[i], pe) for pe, one in trace.pes.items() if (i := _last_method(one.slices)) >= 0),
        default=None,
    )
    path: dict[str, int] = {}
    if last is None:
        return path
    until_ns, pe = last
    while True:
        slices = trace.pes[pe].slices
        i = _slice_before(slices, until_ns)
        if i < 0:
            break
        _spend(path, ELSEWHERE, until_ns - max(slices.end_ns[i], slices.start_ns[i]))
        _spend(path, slices.name[i], min(until_ns, slices.end_ns[i]) - slices.start_ns[i])
        until_ns = slices.start_ns[i]
        sent = trace.sends.get(slices.message[i])
        if sent is not None and sent[1] < until_ns:
            _spend(path, IN_MESSAGES, until_ns - sent[1])
            pe, until_ns = sent
    return dict(sorted(path.items(), key=lambda item: -item[1]))


def _last_method(slices: Slices) -> int:
    i = len(slices.name) - 1
    while i >= 0 and slices.name[i] == IDLE:
        i -= 1
    return i


def _slice_before(slices: Slices, time_ns: int) -> int:
    """The last slice that is no idleness and began before that time; -1 if there is none."""
    i = bisect_left(slices.start_ns, time_ns) - 1
    while i >= 0 and slices.name[i] == IDLE:
        i -= 1
    return i


def _spend(path: dict[str, int], what: str, time_ns: int) -> None:
    if time_ns > 0:
        path[what] = path.get(what, 0) + time_ns


def busy_share(trace: PeTrace, num_bins: int, begin_ns: int, end_ns: int) -> list[float]:
    """The share of each of `num_bins` equal times in which the PE ran entry methods."""
    width_ns = max((end_ns - begin_ns) / num_bins, 1)
    edges = [begin_ns + i * width_ns for i in range(num_bins + 1)]
    shares = [0.0] * num_bins
    slices = trace.slices
    for name, first_ns, last_ns in zip(slices.name, slices.start_ns, slices.end_ns, strict=True):
        if name == IDLE or last_ns <= first_ns:
            continue
        i = max(bisect_right(edges, first_ns) - 1, 0)
        while i < num_bins and edges[i] < last_ns:
            shares[i] += (min(last_ns, edges[i + 1]) - max(first_ns, edges[i])) / width_ns
            i += 1
    return shares
