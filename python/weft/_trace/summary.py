"""What a trace says in short: where the time went, by PE and by entry method, and what the job waited for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from weft._trace.reading import IDLE_PLACE, MESSAGE_PLACE, PeTrace, Sends, Slices, Times, Trace

NUM_WAITS = 10
IN_MESSAGES = "(messages under way)"
ELSEWHERE = "(outside of entry methods)"
_NUM_GRAINS = 64


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
    """How a PE spent its time. What is in none of both is Weft's own."""

    total_ns: int = 0
    methods_ns: int = 0
    idle_ns: int = 0
    longest_queue: int = 0


def times_of(trace: PeTrace) -> PeTimes:
    """The times of a PE. A part that ran inside another one does not count again."""
    slices = trace.slices
    is_idle = slices.name == IDLE_PLACE
    lengths_ns = np.where(slices.depth == 1, slices.length_ns, 0)
    idle_ns = int(lengths_ns[is_idle].sum())
    total_ns = trace.end_ns - trace.begin_ns
    return PeTimes(total_ns, int(lengths_ns.sum()) - idle_ns, idle_ns, trace.longest_queue)


def methods_of(trace: Trace) -> dict[str, Method]:
    """All entry methods, and main; the one with the most time first."""
    methods: dict[str, Method] = {}
    num_names = len(trace.names)
    for one in trace.pes.values():
        slices = one.slices
        rows = np.flatnonzero(slices.name > MESSAGE_PLACE)
        names, lengths_ns = slices.name[rows], slices.length_ns[rows]
        parts = np.bincount(names, minlength=num_names)
        runs = np.bincount(names[slices.waited_ns[rows] < 0], minlength=num_names)
        counts = np.bincount(names * _NUM_GRAINS + _bit_lengths(lengths_ns))
        order = np.argsort(names, kind="stable")
        for place in np.flatnonzero(parts).tolist():
            method = methods.setdefault(trace.names[place], Method())
            method.parts += int(parts[place])
            method.runs += int(runs[place])
        for place, lengths in _groups(names[order], lengths_ns[order]):
            method = methods[trace.names[place]]
            method.time_ns += int(lengths.sum())
            method.longest_ns = max(method.longest_ns, int(lengths.max()))
        for key in np.flatnonzero(counts).tolist():
            place, grain = divmod(key, _NUM_GRAINS)
            of_method = methods[trace.names[place]].grains
            of_method[grain] = of_method.get(grain, 0) + int(counts[key])
    return dict(sorted(methods.items(), key=lambda item: -item[1].time_ns))


def grains_of(trace: Trace) -> dict[int, int]:
    """How many parts of entry methods there were, by the power of two of their nanoseconds, in order."""
    counts: dict[int, int] = {}
    for method in methods_of(trace).values():
        for grain, count in method.grains.items():
            counts[grain] = counts.get(grain, 0) + count
    return dict(sorted(counts.items()))


def _groups(names: npt.NDArray[np.int64], lengths_ns: Times) -> list[tuple[int, Times]]:
    """The lengths of each name. `names` is sorted."""
    ends = np.flatnonzero(np.diff(names)) + 1
    return [
        (int(part[0]), lengths)
        for part, lengths in zip(np.split(names, ends), np.split(lengths_ns, ends), strict=True)
        if part.size
    ]


def _bit_lengths(numbers: Times) -> npt.NDArray[np.int64]:
    return np.frexp(numbers.astype(np.float64))[1].astype(np.int64)


def longest_waits(trace: Trace, count: int = NUM_WAITS) -> list[Wait]:
    """The longest waits of entry methods, the longest first."""
    waits: list[Wait] = []
    for pe, one in trace.pes.items():
        slices = one.slices
        rows = np.flatnonzero(slices.waited_ns > 0)
        rows = rows[np.argsort(-slices.waited_ns[rows], kind="stable")[:count]]
        waits += (
            Wait(
                int(slices.waited_ns[i]),
                pe,
                trace.names[slices.name[i]],
                int(slices.element[i]),
                int(slices.start_ns[i]),
            )
            for i in rows
        )
    return sorted(waits, key=lambda wait: -wait.waited_ns)[:count]


class _Causes:
    """The slices of a PE that are no idleness, and the cause of each: the slice that was under way before."""

    def __init__(self, pe: int, slices: Slices) -> None:
        rows = np.flatnonzero(slices.name != IDLE_PLACE)
        self.pe = pe
        self.start_ns = slices.start_ns[rows]
        self.end_ns = slices.end_ns[rows]
        self.message = slices.message[rows]
        self.name = slices.name[rows]
        # A PE that was busy before would have begun the slice earlier: its message waited in the queue.
        self.waited_for_message = (rows == 0) | (slices.name[rows - 1] == IDLE_PLACE)
        self.cause_pe = np.full(len(rows), pe)
        self.cause_ns = self.start_ns.copy()

    def find_causes(self, sends: Sends) -> None:
        if len(sends.message) == 0 or len(self.message) == 0:
            return
        at = np.minimum(np.searchsorted(sends.message, self.message), len(sends.message) - 1)
        is_known = (sends.message[at] == self.message) & (self.message != 0)
        is_known &= (sends.time_ns[at] < self.start_ns) & self.waited_for_message
        self.cause_pe = np.where(is_known, sends.pe[at], self.pe)
        self.cause_ns = np.where(is_known, sends.time_ns[at], self.start_ns)

    def before(self, times_ns: Times) -> npt.NDArray[np.int64]:
        """The last slice that began before each time; -1 if there is none."""
        return np.searchsorted(self.start_ns, times_ns) - 1


def critical_path(trace: Trace) -> dict[str, int]:
    """Nanoseconds by entry method on the chain of causes that ends with the last entry method of the job.

    The cause of a slice is what the PE did before. If the PE was idle before, it is the message that called
    the slice, and of that the entry method that sent it. IN_MESSAGES is the time from such a send until what
    it called began.
    """
    pes = {pe: _Causes(pe, one.slices) for pe, one in trace.pes.items()}
    last = max(((int(one.end_ns[-1]), pe) for pe, one in pes.items() if len(one.end_ns)), default=None)
    if last is None:
        return {}
    for one in pes.values():
        one.find_causes(trace.sends)
    # The place of the cause of each slice, on its PE.
    causes = {pe: _places_of_causes(one, pes) for pe, one in pes.items()}
    spent = dict.fromkeys(range(-2, len(trace.names)), 0)  # -1: messages; -2: elsewhere
    until_ns, pe = last
    i = len(pes[pe].end_ns) - 1
    while i >= 0:
        one = pes[pe]
        start_ns, end_ns = one.start_ns.item(i), one.end_ns.item(i)
        spent[-2] += max(until_ns - max(end_ns, start_ns), 0)
        spent[one.name.item(i)] += max(min(until_ns, end_ns) - start_ns, 0)
        until_ns = one.cause_ns.item(i)
        spent[-1] += start_ns - until_ns
        i, pe = causes[pe].item(i), one.cause_pe.item(i)
    names = {-1: IN_MESSAGES, -2: ELSEWHERE, **dict(enumerate(trace.names))}
    path = {names[place]: time_ns for place, time_ns in spent.items() if time_ns > 0}
    return dict(sorted(path.items(), key=lambda item: -item[1]))


def _places_of_causes(one: _Causes, pes: dict[int, _Causes]) -> npt.NDArray[np.int64]:
    places = np.full(len(one.start_ns), -1)
    for pe in np.unique(one.cause_pe):
        rows = one.cause_pe == pe
        places[rows] = pes[int(pe)].before(one.cause_ns[rows])
    return places


def busy_share(trace: PeTrace, num_bins: int, begin_ns: int, end_ns: int) -> list[float]:
    """The share of each of `num_bins` equal times in which the PE ran entry methods."""
    width_ns = max((end_ns - begin_ns) / num_bins, 1)
    edges = begin_ns + np.arange(num_bins + 1) * width_ns
    slices = trace.slices
    rows = np.flatnonzero((slices.name != IDLE_PLACE) & (slices.depth == 1) & (slices.length_ns > 0))
    if rows.size == 0:
        return [0.0] * num_bins
    # How long it was busy before each time at which that changes its pace.
    busy_ns = np.cumsum(slices.length_ns[rows])
    times_ns = np.stack([slices.start_ns[rows], slices.end_ns[rows]], axis=1).ravel()
    before_ns = np.stack([busy_ns - slices.length_ns[rows], busy_ns], axis=1).ravel()
    shares = np.diff(np.interp(edges, times_ns, before_ns)) / width_ns
    return [float(share) for share in shares]
