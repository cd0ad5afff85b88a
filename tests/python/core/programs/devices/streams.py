"""Streams of other libraries, with stand-ins; checks itself. Over the unit tests' stand-in CUDA driver."""

import ctypes
import gc

import numpy as np
from refusing import refused
from standin_streams import (
    AnyStream,
    BrokenStream,
    CupyEvent,
    CupyMemory,
    CupyPointer,
    CupyStream,
    NumbaEvent,
    NumbaStream,
    TorchStream,
)
from standins import CUDA, CudaArray, DlpackArray

import weft


def check_dlpack_streams(array, stream):
    """A consumer's stream waits for the array's own, on the device."""
    calls = ctypes.CDLL("libcuda.so.1").fake_cuda_calls
    busy = array.on(stream)
    consumer = weft.Stream("cuda:1")
    for number, waits in ((None, 1), (1, 1), (2, 1), (consumer.handle, 1), (stream.handle, 0), (-1, 0)):
        before = calls(b"cuStreamWaitEvent")
        busy.__dlpack__(stream=number)
        assert calls(b"cuStreamWaitEvent") - before == waits, number
        array.__dlpack__(stream=number)
        assert calls(b"cuStreamWaitEvent") - before == waits, "without a stream there is nothing to wait for"


async def check_streams():
    array = weft.DeviceArray(3, float, "cuda:1")
    stream = weft.Stream("cuda:1")
    for named, handle in (
        (stream, stream.handle),
        (stream.handle, stream.handle),
        (CupyStream(stream.handle), stream.handle),
        (TorchStream(stream.handle, 1), stream.handle),
        (AnyStream((0, stream.handle)), stream.handle),
        (NumbaStream(stream.handle), stream.handle),
        (NumbaStream(0), 1),
        (CupyStream(0), 1),
        (TorchStream(0, 1), 1),
        (AnyStream((0, 0)), 1),
        (1, 1),
        (2, 2),
    ):
        assert array.on(named).__cuda_array_interface__["stream"] == handle
        await weft.stream_done(named, kind="cuda:1")
    for named in (stream, CupyStream(stream.handle, 1), TorchStream(stream.handle, 1), 1):
        assert await weft.stream_done(named) is None
    refused("version 1", array.on, AnyStream((1, stream.handle)))
    refused("not (0, handle)", array.on, AnyStream(stream.handle))
    for no_stream in (NumbaEvent, CupyEvent, CupyPointer, CupyMemory):
        refused(f"{no_stream.__name__} for a stream", array.on, no_stream(stream.handle))
    refused("list for a stream", array.on, [])
    try:
        array.on(BrokenStream())
    except RuntimeError as error:
        assert str(error) == "the driver is gone"
    else:
        raise AssertionError("the error of a property is lost")
    refused(
        "CUDA stream for memory on emulated:0", weft.DeviceArray(3, float, "emulated:0").on, CupyStream(5)
    )
    # What a library's stream makes, and what it gets: copies in order with it.
    source = np.arange(3.0)
    await array.copy_from(source, stream=CupyStream(stream.handle))
    assert np.array_equal(await array.to_host(stream=AnyStream((0, stream.handle))), source)
    other = weft.DeviceArray(3, float, "cuda:0")
    await other.copy_from(CudaArray(**array.on(stream).__cuda_array_interface__))
    assert np.array_equal(await other.to_host(), source)
    taken = DlpackArray(array.ptr, (3,), device=(CUDA, 1))
    await other[:0].copy_from(weft.DeviceArray(0, float, "cuda:1"))
    await other.copy_from(taken)
    gc.collect()
    assert taken.deleted == 1


async def main():
    check_dlpack_streams(weft.DeviceArray(3, float, "cuda:1"), weft.Stream("cuda:1"))
    await check_streams()
    return "all checked"


print(weft.run(main))
