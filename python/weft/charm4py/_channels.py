"""Channels of charm4py over those of Weft."""

from __future__ import annotations

from typing import Any

from weft import _core
from weft.charm4py._threads import wait


def _is_device_array(value: Any) -> bool:
    return isinstance(value, _core.DeviceArray) or hasattr(value, "__cuda_array_interface__")


class Channel:
    """An ordered stream between two chares.

    Args:
        chare: the chare of this end, ``self``.
        remote: the proxy of the chare at the other end, which makes a channel too. The n-th channel between
            the two at one end belongs to the n-th at the other.
    """

    def __init__(self, chare: Any, remote: Any, local: Any = None) -> None:
        self.remote = remote
        peers = chare.__dict__.setdefault("_weft_peers", {})
        peer = remote._weft
        number = peers[peer] = peers.get(peer, -1) + 1
        self._weft = _core.Channel(chare._weft, peer, number)
        self._next: Any = None

    def send(self, *msg: Any) -> None:
        """Sends values, which are copied; does not block.

        If the first value is a device array, it alone is sent, in place, and `send` blocks until it may be
        changed. The other end receives it with ``recv(array)``. A size behind it has no effect.
        """
        if msg and _is_device_array(msg[0]):
            wait(self._weft.send(msg[0]))
        else:
            self._weft.send_object(msg)

    def recv(self, into: Any = None, size: Any = None) -> Any:
        """Blocks until the next message is there: the value, or the tuple of several.

        Args:
            into: the device array, or other memory, for what the other end sends in place.
            size: accepted; an array has its size.

        Raises:
            weft.Error: `into` after `charm.iwait` or `ready`, which have asked for a value already.
        """
        if into is not None:
            if self._next is not None:
                raise _core.Error(
                    "recv(array) cannot follow iwait or ready on a channel; receive the value first, or "
                    "call recv(array) without them"
                )
            return wait(self._weft.recv(into=into))
        future = self._when_ready()
        self._next = None
        values = future.result() if future.done() else wait(future)
        return values[0] if len(values) == 1 else values

    def ready(self) -> bool:
        """Whether `recv` would not block. The chare cannot move until `recv` has returned that message."""
        return bool(self._when_ready().done())

    def _when_ready(self) -> Any:
        if self._next is None:
            self._next = self._weft.recv_object()
        return self._next

    def __getstate__(self) -> Any:
        if self._next is not None:
            raise _core.Error(
                "a chare cannot move after charm.iwait or ready() of a channel; receive the message first"
            )
        return self.__dict__
