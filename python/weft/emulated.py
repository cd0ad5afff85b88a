"""Kernels on emulated devices: programs for GPUs run on machines without one.

An emulated device keeps its memory where the CPU cannot reach it, and works through its streams later, as a
real one does. Kernels are Python functions here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weft import _core

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Graph", "capture", "launch", "memory_at", "set_faults"]


def launch(
    function: Callable[..., object], *arguments: Any, stream: _core.Stream | int | None = None
) -> _core.Operation[None]:
    """Queues ``function(*arguments)`` on an emulated device and returns at once.

    When its turn comes, the function gets a NumPy array for every weft.DeviceArray, by which it reads and
    writes the device's memory, and everything else as it is. It runs on the PE's thread, between entry
    methods, after the work that is queued on the stream before it.

    Args:
        function: what runs; it must not keep the arrays that it gets.
        arguments: at least one weft.DeviceArray, all of one emulated device; they are kept until it has run.
        stream: a weft.Stream of that device; None for a stream that all such launches share.

    Returns:
        an operation that is over when the function has run. If it is dropped, the function still runs.

    Raises:
        weft.Error: the arguments are not as above. Awaiting the operation raises it if the function raised an
            exception. If the operation is dropped, that exception ends the job.
    """
    return _core._emulated_launch(function, arguments, stream)


class Graph:
    """What capture() has taken up from a stream, to be launched as often as wanted."""

    def __init__(self) -> None:
        self._taken: object = None

    def launch(self, stream: _core.Stream) -> _core.Operation[None]:
        """Queues all of it on a stream of the same device and returns at once.

        Args:
            stream: a weft.Stream of the device.

        Returns:
            an operation that is over when the stream has done it.

        Raises:
            weft.Error: another device, or the stream is being captured.
        """
        if self._taken is None:
            raise _core.Error("a graph can be launched when its capture() has ended", "invalid_argument")
        return _core._emulated_launch_graph(self._taken, stream)


@contextmanager
def capture(stream: _core.Stream) -> Iterator[Graph]:
    """Takes up what is queued on a stream instead of doing it, as a capture of a CUDA graph does.

    Kernels, copies on the stream, signals and messages of a weft.QueuedChannel can be captured. Nothing can
    wait for the stream meanwhile. The program keeps the arrays of captured copies and messages.

    Args:
        stream: a weft.Stream of an emulated device.

    Yields:
        the weft.emulated.Graph, which can be launched after the with statement.

    Raises:
        weft.Error: another stream, or one that is being captured.
    """
    graph = Graph()
    _core._emulated_begin_capture(stream)
    try:
        yield graph
    finally:
        graph._taken = _core._emulated_end_capture(stream)


def memory_at(address: int, shape: int | Sequence[int], dtype: npt.DTypeLike) -> Any:
    """The memory at an address of the device, for a kernel while it runs.

    As a kernel on a GPU turns one of weft.pgas.peer_addresses() into a pointer.

    Args:
        address: in memory of the device, or in memory of another device that it has mapped.
        shape: of the array, which lies inside of one allocation.
        dtype: of its elements.

    Returns:
        a NumPy array, which the kernel must not keep.

    Raises:
        weft.Error: no kernel is running, or there is no such memory.
    """
    return _core._emulated_memory_at(address, shape, dtype)


def set_faults(
    *,
    polls_per_copy: int = 2,
    fail_copy: int = 0,
    fail_allocation: int = 0,
    device_bytes: int | None = None,
    refuse_exports: bool = False,
) -> None:
    """Makes the emulated devices of this PE slow or faulty, for tests; counting starts anew.

    Args:
        polls_per_copy: how often a copy is looked at until it is done, at least 1; also one under way, which
            fewer polls let go on.
        fail_copy: the n-th copy from now on fails; 0 for none.
        fail_allocation: the n-th allocation from now on fails; 0 for none.
        device_bytes: the memory of each device; None for as much as there is.
        refuse_exports: memory that is allocated from now on cannot be mapped by other PEs, like that of a
            stream-ordered pool.
    """
    text = f"polls={polls_per_copy},fail_copy={fail_copy},fail_allocation={fail_allocation}"
    if device_bytes is not None:
        text += f",device_bytes={device_bytes}"
    if refuse_exports:
        text += ",refuse_exports=1"
    _core._emulated_set_faults(text)
