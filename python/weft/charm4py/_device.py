"""Device memory by its address, and `charm.lib`'s copies: as programs of charm4py's GPU versions name them.

Source: benchmarks of Choi et al., "GPU-aware communication with UCX in parallel programming models", 2021.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import cache
from typing import Any

from weft import _core
from weft.charm4py._threads import in_thread, wait

# The name of stream 0 in Weft.
_LEGACY_STREAM = 1


def is_device_array(value: Any) -> bool:
    """Whether a channel sends it in place."""
    return isinstance(value, _core.DeviceArray) or hasattr(value, "__cuda_array_interface__")


class AtAddress:
    """`size_bytes` bytes of device memory, which stays its owner's."""

    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (size_bytes,),
            "typestr": "|u1",
            "version": 3,
        }


def arrays_in(
    values: Iterable[Any], addresses: Iterable[int] | None, sizes: Iterable[int] | None
) -> list[Any]:
    """The device arrays among the values, and those at the addresses.

    A size may follow an array, which knows it.

    Args:
        values: of one message.
        addresses: of device memory.
        sizes: in bytes, one for each address.

    Raises:
        weft.Error: other values are beside arrays, or there are not as many sizes as addresses.
    """
    values = list(values)
    arrays = [value for value in values if is_device_array(value)]
    at = [] if addresses is None else [int(address) for address in addresses]
    sizes = [] if sizes is None else [int(size) for size in sizes]
    if len(at) != len(sizes):
        raise _core.Error(f"a channel got {len(at)} addresses of device memory and {len(sizes)} sizes")
    arrays += [AtAddress(address, size) for address, size in zip(at, sizes, strict=True)]
    others = len(values) - (len(arrays) - len(at))
    is_size = len(values) == 2 and is_device_array(values[0]) and isinstance(values[1], int)
    if arrays and others > 0 and not is_size:
        raise _core.Error("a message of a channel has device arrays or other values; send them one by one")
    return arrays


@cache
def _driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise _core.Error(
            f"charm.lib copies device memory, and there is no CUDA driver here: {error}"
        ) from None


def _call(name: str, *arguments: Any) -> None:
    result = getattr(_driver(), name)(*arguments)
    if result != 0:
        raise _core.Error(f"{name} of the CUDA driver failed with error {result}")


def _copy(to: int, source: int, size: int, stream: int) -> None:
    # The driver finds out which side is the host.
    pointers = map(ctypes.c_void_p, (to, source))
    _call("cuMemcpyAsync", *pointers, ctypes.c_size_t(size), ctypes.c_void_p(stream))


class CudaCopies:
    """`charm.lib`: copies that are queued on a stream. Addresses, sizes in bytes and handles are integers."""

    @staticmethod
    def CudaDtoH(to_host: int, from_device: int, size: int, stream: int = 0) -> None:
        """Queues a copy to the host. The host memory is valid after `CudaStreamSynchronize`."""
        _copy(to_host, from_device, size, stream)

    @staticmethod
    def CudaHtoD(to_device: int, from_host: int, size: int, stream: int = 0) -> None:
        """Queues a copy to the device. The host memory may change after `CudaStreamSynchronize`."""
        _copy(to_device, from_host, size, stream)

    @staticmethod
    def CudaStreamSynchronize(stream: int = 0) -> None:
        """Waits for the stream. Outside of a method with `@coro` the PE does nothing else meanwhile."""
        if in_thread():
            wait(_core.stream_done(stream or _LEGACY_STREAM, "cuda"))
        else:
            _call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"charm.lib.{name} does not exist in Weft; CudaDtoH, CudaHtoD and CudaStreamSynchronize do"
        )
