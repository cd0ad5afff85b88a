"""The hosts of `weft run --hosts`, and how many PEs each gets."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from weft.launch.command import UsageError

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class HostSlots:
    """A host as the user names it, and for how many PEs it has room."""

    name: str
    slots: int

    @property
    def is_here(self) -> bool:
        """Whether it is the host of the launcher, which starts PEs there itself."""
        here = socket.gethostname()
        return self.name in _LOOPBACK or self.name in (here, here.partition(".")[0])


def parse_hosts(text: str, num_pes: int) -> list[HostSlots]:
    """`a:4,b:4`, or `a,b` with equal shares. PEs are numbered host by host, in this order.

    Raises:
        UsageError: it is no list of hosts, or has no room for so many PEs.
    """
    words = [word.strip() for word in text.split(",")]
    named = [_parse_host(word, text) for word in words]
    names = [name for name, _ in named]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--hosts {text}: {doubled} is there twice; say how many PEs it gets, {doubled}:2")
    here = [name for name in names if HostSlots(name, 0).is_here]
    if len(here) > 1:
        raise UsageError(f"--hosts {text}: {here[0]} and {here[1]} are both this host; name it once")
    counted = [slots for _, slots in named if slots is not None]
    if counted and len(counted) < len(named):
        raise UsageError(f"--hosts {text}: give all hosts a number of PEs, as in a:4,b:4, or none")
    if not counted:
        return _equal_shares(names, num_pes)
    if sum(counted) < num_pes:
        raise UsageError(f"--hosts {text}: there is room for {sum(counted)} PEs, and -n says {num_pes}")
    return [HostSlots(name, slots or 0) for name, slots in named]


def _parse_host(word: str, text: str) -> tuple[str, int | None]:
    # An IPv6 address has colons itself: [fe80::1]:4.
    name, colon, slots = word.rpartition(":")
    if word.startswith("[") and "]" in word:
        name, _, rest = word[1:].partition("]")
        colon, slots = rest[:1], rest[1:]
    elif ":" in name:
        name, colon, slots = word, "", ""
    elif not colon:
        name = word
    # ssh would take a dash for an option.
    if not name or name.startswith("-") or any(c.isspace() for c in name):
        raise UsageError(f"--hosts {text}: '{word}' is no host; give names with commas, such as a:4,b:4")
    if not colon:
        return name, None
    if not slots.isdecimal() or int(slots) < 1:
        raise UsageError(f"--hosts {text}: '{slots}' is no number of PEs; write {name}:4")
    return name, int(slots)


def _equal_shares(names: Sequence[str], num_pes: int) -> list[HostSlots]:
    ends = [host * num_pes // len(names) for host in range(len(names) + 1)]
    return [HostSlots(name, ends[i + 1] - ends[i]) for i, name in enumerate(names)]
