"""Arrays in emulated device memory, their copies, streams and kernels; checks itself."""

import gc
import io
import pickle
import threading

import numpy as np
from refusing import refused

import weft
from weft import _core

KINDS = ("emulated:0", "emulated:1", "host")


def check_form(kind):
    array = weft.DeviceArray((4, 3, 2), np.float32, kind)
    assert (array.shape, array.dtype, array.strides) == ((4, 3, 2), np.float32, (24, 8, 4))
    assert (array.nbytes, array.size, array.ndim, len(array)) == (96, 24, 3, 4)
    assert array.kind == kind and array.ptr != 0 and array.stream is None
    assert array.device == int(kind.partition(":")[2] or 0)
    assert repr(array) == f"<weft.DeviceArray float32 of shape (4, 3, 2) on {kind}>"
    for view, shape, offset in (
        (array[1], (3, 2), 24),
        (array[-1][2], (2,), 72 + 16),
        (array[1:3], (2, 3, 2), 24),
        (array[-2:], (2, 3, 2), 48),
        (array[3:1], (0, 3, 2), 72),
        (array.reshape((6, 4)), (6, 4), 0),
        (array.reshape(24)[5:7], (2,), 20),
        (array[0][0][1], (), 4),
    ):
        assert (view.shape, view.ptr - array.ptr) == (shape, offset), (view, view.ptr - array.ptr)
        assert view.nbytes == 4 * int(np.prod(shape)) and view.dtype == array.dtype
    empty = weft.DeviceArray((2, 0), "i8", kind)
    assert (empty.nbytes, empty.ptr, empty[0].shape) == (0, 0, (0,))
    refused("step 1", lambda: array[::2])
    refused("first dimension", lambda: array[0, 0])
    refused("outside", lambda: array[4], error=IndexError)
    refused("as many", array.reshape, (5, 5))
    refused("no elements", lambda: array[0][0][1][0])


def check_refusals():
    refused("memory kind", weft.DeviceArray, 3, float, "gpu")
    refused("memory kind", weft.DeviceArray, 3, float, "emulated:-1")
    refused("memory kind", weft.DeviceArray, 3, float, "host:0")
    refused("memory kind", weft.DeviceArray, 3, float, 0)
    refused("there is no emulated:7", weft.DeviceArray, 3, float, "emulated:7")
    refused("Python objects", weft.DeviceArray, 3, object, "host")
    refused("whole number", weft.DeviceArray, (2.5,), float, "host")
    refused("extent", weft.DeviceArray, -1, float, "host")
    refused("addresses", weft.DeviceArray, (2**40, 2**40), float, "host")
    refused("no emulated device memory", weft.DeviceArray, 2**60, "i1", "emulated:0")
    refused("'no_such_type'", weft.DeviceArray, 3, "no_such_type", "host", error=TypeError)
    array = weft.DeviceArray(4, float, "emulated:0")
    refused("to_host", np.asarray, array, error=TypeError)
    refused("to_host", memoryview, array, error=BufferError)
    refused("stands in", np.from_dlpack, array, error=BufferError)
    assert not hasattr(array, "__cuda_array_interface__")
    refused("argument of its own", pickle.dumps, array)
    refused("same form", array.copy_from, np.zeros(4, np.float32))
    refused("same form", array.copy_from, np.zeros((2, 2)))
    refused("same form", array.copy_from, b"bytes")
    refused("weft.pack(array)", array.copy_from, np.zeros(8)[::2])
    refused("own memory", array[1:].copy_from, array[:3])
    refused("no buffer", array.copy_from, 5)
    refused("0 could be either", array.on, 0)
    refused("emulated:1", array.on, weft.Stream("emulated:1"))
    refused("for a stream", array.on, "stream")
    refused("host memory, which has none", weft.DeviceArray(3, float, "host").on, 1)
    refused("no streams of host", weft.Stream, "host")
    refused("no CUDA stream", weft.Stream("emulated:0").__cuda_stream__)


async def check_host():
    """Host arrays give their memory to NumPy."""
    array = weft.DeviceArray((2, 3), np.int32, "host")
    numpy_array = np.asarray(array)
    numpy_array[...] = np.arange(6).reshape(2, 3)
    assert np.array_equal(await array.to_host(), numpy_array)
    assert np.array_equal(np.from_dlpack(array), numpy_array)
    assert np.array_equal(np.asarray(array[1]), [3, 4, 5])
    assert memoryview(array[1]).tolist() == [3, 4, 5]
    assert array.__dlpack_device__() == (1, 0)
    refused("no stream", array.__dlpack__, stream=1, error=ValueError)
    refused("does not move", array.__dlpack__, dl_device=(2, 0), error=BufferError)
    refused("does not copy", array.__dlpack__, copy=True, error=BufferError)
    del array
    gc.collect()
    assert numpy_array.sum() == 15  # it keeps the memory


async def check_copies(kind):
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    array = weft.DeviceArray(data.shape, data.dtype, kind)
    copying = array.copy_from(data)
    assert kind == "host" or not copying.done()  # never inside the call
    assert await copying is array
    assert np.array_equal(await array.to_host(), data)
    assert np.array_equal(await array[1:3].to_host(), data[1:3])
    await array[2].copy_from(np.full(6, 9, np.float32))
    assert (await array.to_host())[2].tolist() == [9] * 6
    for other_kind in KINDS:
        other = weft.DeviceArray(data.shape, data.dtype, other_kind)
        await other.copy_from(array)
        assert np.array_equal(await other.to_host(), await array.to_host())
    await array.reshape(24).copy_from(memoryview(bytes(96)))
    assert not (await array.to_host()).any()
    empty = weft.DeviceArray(0, float, kind)
    assert (await (await empty.copy_from(np.zeros(0))).to_host()).shape == (0,)
    # Dropped copies finish, and keep the arrays that they need.
    for i in range(5):
        weft.DeviceArray(100_000, "i4", kind).copy_from(np.full(100_000, i, "i4"))
    big = weft.DeviceArray(100_000, "i4", kind)
    await big.copy_from(np.arange(100_000, dtype="i4"))
    copying = big.to_host()
    del big
    gc.collect()
    assert np.array_equal(await copying, np.arange(100_000))


def double(array):
    assert isinstance(array, np.ndarray) and array.flags.writeable
    array *= 2


def add(array, other, number):
    array += other + number


def explode(array):
    raise ZeroDivisionError(f"at {array[0]}")


async def check_kernels():
    array = weft.DeviceArray(5, float, "emulated:1")
    await array.copy_from(np.ones(5))
    launched = weft.emulated.launch(double, array)
    assert not launched.done()
    await launched
    await weft.emulated.launch(add, array, array, 0.5)
    assert (await array.to_host()).tolist() == [4.5] * 5
    # In stream order: nothing here waits for what comes before it.
    stream = weft.Stream("emulated:1")
    for _ in range(3):
        weft.emulated.launch(double, array, stream=stream)
    assert (await array.to_host(stream=stream)).tolist() == [36.0] * 5
    assert array.on(stream).stream is stream
    weft.emulated.launch(double, array, stream=stream)
    assert (await array.on(stream).to_host()).tolist() == [72.0] * 5
    weft.emulated.launch(double, array, stream=stream)
    await weft.stream_done(stream)
    assert (await array.to_host()).tolist() == [144.0] * 5
    weft.emulated.launch(double, array, stream=stream)
    assert await weft.stream_done(stream.handle, kind="emulated:1") is None
    assert (await array.to_host()).tolist() == [288.0] * 5
    assert await weft.emulated.launch(double, weft.DeviceArray(0, float, "emulated:0")) is None

    refused("at least one", weft.emulated.launch, double, np.ones(3))
    refused("one emulated device", weft.emulated.launch, add, array, weft.DeviceArray(5, float, "host"), 1)
    refused("one emulated device", weft.emulated.launch, add, array, weft.DeviceArray(5, float, "emulated:0"))
    refused("function", weft.emulated.launch, 5, array)
    refused(
        'weft.Stream("emulated:1")',
        lambda: weft.emulated.launch(double, array, stream=weft.Stream("emulated:0")),
    )


async def failure_of(operation):
    try:
        await operation
    except weft.Error as error:
        return str(error)
    raise AssertionError("it did not fail")


async def check_faults():
    array = weft.DeviceArray(5, float, "emulated:0")
    message = await failure_of(weft.emulated.launch(explode, await array.copy_from(np.ones(5))))
    assert "explode" in message and "ZeroDivisionError: at 1.0" in message, message

    weft.emulated.set_faults(fail_copy=1)
    assert "fault injection" in await failure_of(array.copy_from(np.ones(5)))
    weft.emulated.set_faults(fail_allocation=2)
    weft.DeviceArray(5, float, "emulated:0")
    refused("fault injection", weft.DeviceArray, 5, float, "emulated:0")
    weft.emulated.set_faults(device_bytes=1000)
    refused("emulated:0 is full", weft.DeviceArray, 1000, float, "emulated:0")
    refused("no fault", weft.emulated.set_faults, polls_per_copy=0)

    # A slow stream does not block other streams or the PE.
    weft.emulated.set_faults(polls_per_copy=2000)
    slow = array.copy_from(np.full(5, 3.0))
    assert await weft.emulated.launch(double, weft.DeviceArray(1, float, "emulated:0")) is None
    assert not slow.done()
    weft.emulated.set_faults()
    await slow
    assert (await array.to_host()).tolist() == [3.0] * 5
    await check_threads(array)


async def check_threads(array):
    """Other threads run while the PE waits for nothing but a device, here until one of them has run."""
    may_look = threading.Event()
    ended = []
    seen = []

    def look():
        may_look.wait()
        seen.append(list(ended))
        _core.post_from_any_thread(weft.emulated.set_faults)

    thread = threading.Thread(target=look)
    thread.start()
    weft.emulated.set_faults(polls_per_copy=10**9)
    copying = array.copy_from(np.full(5, 4.0))
    may_look.set()
    await copying
    ended.append("copy")
    thread.join()
    assert seen == [[]]


async def main():
    for kind in KINDS:
        check_form(kind)
        await check_copies(kind)
    check_refusals()
    await check_host()
    await check_kernels()
    await check_faults()
    # Operations in flight at the end of the job are ended with it.
    weft.emulated.set_faults(polls_per_copy=1000)
    weft.DeviceArray(1000, float, "emulated:0").copy_from(np.ones(1000))
    left = weft.DeviceArray(1000, float, "emulated:1")
    left.to_host().then(lambda _: print("never called", file=io.StringIO()))
    weft.emulated.launch(double, left)
    return left, weft.Stream("emulated:0")


result = weft.run(main)
if result is not None:
    left, stream = result
    refused("no job is running", left.to_host)
    refused("no job is running", weft.stream_done, stream)
    refused("no job is running", weft.DeviceArray, 3, float, "host")
    assert left[1:].shape == (999,)
    print("all checked")
