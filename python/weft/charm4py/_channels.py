"""Channels of charm4py over those of Weft."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft import _core
from weft.charm4py._device import arrays_in, is_device_array
from weft.charm4py._threads import expect_thread, in_thread, wait

#: Of values that a channel copies. Others are looked at.
_host_types: set[type] = {bool, bytes, dict, float, int, list, str, tuple, type(None)}


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

    def send(
        self,
        *msg: Any,
        src_ptrs: Iterable[int] | None = None,
        src_sizes: Iterable[int] | None = None,
        **others: Any,
    ) -> None:
        """Sends values, which are copied; does not block.

        Device arrays are sent in place, each as a message of its own, and `send` blocks until they may be
        changed. The other end receives them with ``recv(array)``.

        Args:
            msg: the values, or device arrays alone; a size behind an array has no effect.
            src_ptrs: addresses of device memory to be sent in place.
            src_sizes: their sizes in bytes.
            others: ``gpu_src_ptrs`` and ``gpu_src_sizes`` are other names of the two.

        Raises:
            NotThreadedError: the running method is no coroutine, and there are device arrays.
            weft.Error: device arrays and other values are in one message.
        """
        if src_ptrs is None and src_sizes is None and not others:
            for value in msg:
                if type(value) not in _host_types and _is_sent_in_place(value):
                    break
            else:
                self._weft.send_object(msg)
                return
        addresses = others.pop("gpu_src_ptrs", src_ptrs)
        arrays = arrays_in(msg, addresses, others.pop("gpu_src_sizes", src_sizes))
        _refuse(others, "send")
        if not arrays:
            self._weft.send_object(msg)
            return
        expect_thread()  # before a transfer starts
        for operation in [self._weft.send(array) for array in arrays]:
            wait(operation)

    def recv(
        self,
        *into: Any,
        post_addresses: Iterable[int] | None = None,
        post_sizes: Iterable[int] | None = None,
        **others: Any,
    ) -> Any:
        """Blocks until the next message is there: the value, or the tuple of several.

        Args:
            into: device arrays, or other memory, for what the other end sends in place; a size behind an
                array has no effect.
            post_addresses: addresses of device memory for it.
            post_sizes: their sizes in bytes.
            others: ``post_buf_addresses`` and ``post_buf_sizes`` are other names of the two.

        Raises:
            NotThreadedError: the call would block, and the running method is no coroutine. Nothing is lost.
            weft.Error: `into` after `charm.iwait` or `ready`, which have asked for a value already.
        """
        if not (into or others) and post_addresses is None and post_sizes is None:
            future = self._next
            if future is not None and future.done():  # as in a loop over charm.iwait
                self._next = None
                values = future.result()
                return values[0] if len(values) == 1 else values
            return self._recv_value()
        addresses = others.pop("post_buf_addresses", post_addresses)
        arrays = arrays_in((), addresses, others.pop("post_buf_sizes", post_sizes))
        arrays = [array for array in into if not isinstance(array, int | None)] + arrays
        _refuse(others, "recv")
        if arrays:
            if self._next is not None:
                raise _core.Error(
                    "recv(array) cannot follow iwait or ready on a channel; receive the value first, or "
                    "call recv(array) without them"
                )
            expect_thread()
            received = [wait(operation) for operation in [self._weft.recv(into=array) for array in arrays]]
            return received[0] if len(received) == 1 else tuple(received)
        return self._recv_value()

    def _recv_value(self) -> Any:
        """The next message of values."""
        future = self._next
        if future is None:
            future = self._weft.recv_object()
        self._next = None
        if future.done():
            values = future.result()
        elif in_thread():
            values = wait(future)
        else:
            self._next = future  # the receive is kept for the next call
            expect_thread()
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


def _is_sent_in_place(value: Any) -> bool:
    if type(value).__module__ == "numpy":
        _host_types.add(type(value))
        return False
    return is_device_array(value)


def _refuse(others: dict[str, Any], name: str) -> None:
    if others:
        raise TypeError(f"Channel.{name}() got an unexpected keyword argument '{next(iter(others))}'")
