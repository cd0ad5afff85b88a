"""Which way the data of this PE went."""

from __future__ import annotations

from typing import NamedTuple

from weft import _core


class TransportUse(NamedTuple):
    """What this PE moved in one way.

    A transfer is counted where it was started; receives only where they passed through host memory.
    """

    #: "tagged send", "active message", "put", "get", "receive" or "peer copy"
    transfer: str
    #: The kind of the device side if there is one: "host", "cuda", "emulated".
    memory: str
    #: "through UCX" (as it is), "staged" (through host memory), "own PE", "peer-mapped" (copied by the
    #: sender's device into the receiver's memory), "bounced" (by the sender's device into memory of Weft's on
    #: the receiver's device, and on from there), "pulled" (copied by the receiver's device out of the
    #: sender's memory), "shared" (host memory that both PEs copied), or "host queue" (a small message to
    #: another PE of this host)
    path: str
    messages: int
    size_bytes: int


class PeerTransports(NamedTuple):
    """PEs that this one reaches by the same transports, such as "posix/memory tcp/eth0"."""

    pes: tuple[int, ...]
    transports: str


def transport_use() -> list[TransportUse]:
    """What this PE has moved so far, one entry per way; `weft run --stats` prints it at the end.

    Raises:
        weft.Error: outside of a job.
    """
    return [TransportUse(*row) for row in _core._transport_use()]


def peer_transports() -> list[PeerTransports]:
    """The PEs that this one has sent to so far, by the transports that reach them.

    Raises:
        weft.Error: outside of a job.
    """
    return [PeerTransports(tuple(pes), transports) for pes, transports in _core._peer_transports()]
