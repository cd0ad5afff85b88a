"""Shares and rates of PEs: the differences of two readings of their pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft._top.memory import resident_bytes
from weft._top.pages import Page

_S = 1e-9
# A PE that works publishes every 20 ms. One that has said nothing for longer is inside an entry method.
_LONGEST_TURN_NS = 200_000_000


@dataclass(frozen=True)
class PathRate:
    """Messages and bytes a second by one path and memory kind."""

    path: str
    memory: str
    messages_per_s: float
    bytes_per_s: float


@dataclass(frozen=True)
class PeSample:
    """What a PE did between two readings. Shares are from 0 to 1, and sum up to 1.

    Attributes:
        busy: the share of the time in which it was neither idle nor in communication.
        communication: the share in which the machine moved bytes while the PE had work.
        idle: the share in which it had nothing to do.
        queued: the pieces of work in its queue, at most `pages.MOST_QUEUED`.
        handled_per_s: calls and messages handled a second.
        host_bytes: the resident memory of its process.
        pool_bytes: what its pool of message memory keeps for reuse, a part of `host_bytes`.
        device_bytes: GPU memory of its process; None if nvidia-smi says nothing of it.
        step_load_s: the load of its chares in the last step of load balancing; None before the first.
        idle_for_s: for how long it has had nothing to do; 0: it works.
        silent_for_s: for how long a PE that works has published nothing: it is inside an entry method.
        host: the name of its host; None: this one.
    """

    pe: int
    pid: int
    busy: float
    communication: float
    idle: float
    queued: int
    handled_per_s: float
    host_bytes: int
    pool_bytes: int
    device_bytes: int | None
    step_load_s: float | None
    idle_for_s: float
    silent_for_s: float
    paths: tuple[PathRate, ...] = field(default=())
    host: str | None = None

    @property
    def messages_per_s(self) -> float:
        """By all paths."""
        return sum(path.messages_per_s for path in self.paths)

    @property
    def bytes_per_s(self) -> float:
        """By all paths."""
        return sum(path.bytes_per_s for path in self.paths)


@dataclass(frozen=True)
class Reading:
    """A page, and when it was read. One of another host has the host's name and the memory of its process."""

    page: Page
    read_ns: int
    host: str | None = None
    remote_bytes: int = 0

    @property
    def resident_bytes(self) -> int:
        """The resident memory of the process."""
        return resident_bytes(self.page.pid) if self.host is None else self.remote_bytes

    @property
    def is_silent(self) -> bool:
        """Whether the PE works and has published nothing for a while."""
        return self.page.idle_since_ns == 0 and self.read_ns - self.page.now_ns > _LONGEST_TURN_NS

    @property
    def times_ns(self) -> int:
        """The time for which the PE's times are known."""
        is_current = self.page.idle_since_ns != 0 or self.is_silent
        return self.read_ns if is_current else self.page.now_ns

    @property
    def idle_ns(self) -> int:
        """Idle until `times_ns`."""
        since_ns = self.page.idle_since_ns
        return self.page.idle_ns + (max(0, self.read_ns - since_ns) if since_ns else 0)

    @property
    def counts_ns(self) -> int:
        """The time of the counters: an idle PE or one inside an entry method counts nothing more."""
        return self.read_ns if self.page.idle_since_ns != 0 or self.is_silent else self.page.published_ns


def shares(before: Reading, after: Reading) -> tuple[float, float, float]:
    """The shares of busy, communication and idle between two readings, or since the start if both are one."""
    if after.times_ns > before.times_ns:
        time_ns = after.times_ns - before.times_ns
        idle_ns = after.idle_ns - before.idle_ns
        communication_ns = after.page.communication_ns - before.page.communication_ns
    else:
        time_ns = max(1, after.times_ns - after.page.began_ns)
        idle_ns, communication_ns = after.idle_ns, after.page.communication_ns
    # Both are estimates from samples.
    idle = min(max(idle_ns / time_ns, 0.0), 1.0)
    communication = min(max(communication_ns / time_ns, 0.0), 1.0 - idle)
    return 1.0 - idle - communication, communication, idle


def path_rates(before: Page, after: Page, seconds: float) -> tuple[PathRate, ...]:
    """Sums the transfers of all types by path and memory kind; the busiest first."""
    earlier = {(row.type, row.path, row.memory): row for row in before.transfers}
    sums: dict[tuple[str, str], list[int]] = {}
    for row in after.transfers:
        old = earlier.get((row.type, row.path, row.memory))
        entry = sums.setdefault((row.path, row.memory), [0, 0])
        entry[0] += max(0, row.messages - (old.messages if old else 0))
        entry[1] += max(0, row.bytes - (old.bytes if old else 0))
    rates = (
        PathRate(path, memory, messages / seconds, size / seconds)
        for (path, memory), (messages, size) in sums.items()
    )
    return tuple(sorted(rates, key=lambda rate: (-rate.bytes_per_s, rate.path, rate.memory)))


def sample(before: Reading, after: Reading, device_bytes: int | None = None) -> PeSample:
    """What the PE did between two readings."""
    busy, communication, idle = shares(before, after)
    page = after.page
    # A PE may have published just behind the first reading, and not since: not all that in no time.
    least_ns = max((after.read_ns - before.read_ns) // 2, 1)
    seconds = max(after.counts_ns - before.counts_ns, least_ns) * _S
    return PeSample(
        pe=page.pe,
        pid=page.pid,
        busy=busy,
        communication=communication,
        idle=idle,
        queued=page.queued,
        handled_per_s=max(0, page.handled - before.page.handled) / seconds,
        host_bytes=after.resident_bytes,
        pool_bytes=page.pool_bytes,
        device_bytes=device_bytes,
        step_load_s=page.step_load_ns * _S if page.num_steps else None,
        idle_for_s=max(0, after.read_ns - page.idle_since_ns) * _S if page.idle_since_ns else 0.0,
        silent_for_s=(after.read_ns - page.now_ns) * _S if after.is_silent else 0.0,
        paths=path_rates(before.page, page, seconds),
        host=after.host,
    )


def at_start(reading: Reading) -> Reading:
    """The reading that a PE would have given when it started."""
    page = reading.page
    zeros = dict.fromkeys(("idle_ns", "idle_since_ns", "communication_ns", "handled", "sent"), 0)
    now = {"now_ns": page.began_ns, "published_ns": page.began_ns}
    return Reading(Page(**{**page.__dict__, **zeros, **now, "transfers": ()}), page.began_ns)


def totals(samples: Sequence[PeSample]) -> tuple[PathRate, ...]:
    """The rates of all PEs by path and memory kind; the busiest first."""
    sums: dict[tuple[str, str], list[float]] = {}
    for one in samples:
        for rate in one.paths:
            entry = sums.setdefault((rate.path, rate.memory), [0.0, 0.0])
            entry[0] += rate.messages_per_s
            entry[1] += rate.bytes_per_s
    rates = (PathRate(path, memory, *entry) for (path, memory), entry in sums.items())
    return tuple(sorted(rates, key=lambda rate: (-rate.bytes_per_s, rate.path, rate.memory)))
