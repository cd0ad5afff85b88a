"""What counts as a buffer, with stand-ins for other libraries' arrays; checks itself.

With the argument `cuda` the process has CUDA (of the unit tests' stand-in driver), else it has none.
"""

import ctypes
import sys

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refused
from standins import (
    COMPLEX,
    CPU,
    CUDA,
    CUDA_HOST,
    CUDA_MANAGED,
    FLOAT,
    INT,
    REFUSES,
    BrokenCudaArray,
    CudaArray,
    CudaArrayWithBuffer,
    DlpackArray,
    ExchangedArray,
    Managed,
    ManagedVersioned,
    c_strides,
    exchange_table,
    take_out_of,
    type_with,
)

import weft
from weft import _core

HAS_CUDA = "cuda" in sys.argv
settings.register_profile("weft", deadline=None, derandomize=True, database=None)
settings.load_profile("weft")

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
TYPES = st.sampled_from(["<f8", "<i4", "|u1", "<c16", "|b1", "<f2", ">i4", "|V12"])
READ, WRITE = False, True
# 1024 elements of 8 bytes, and room for offsets.
HOST = np.zeros(2048)


@st.composite
def strided(draw):
    """A shape with strides in elements: those of C order, damaged ones, or none."""
    shape = draw(SHAPES)
    how = draw(st.sampled_from(["none", "c", "c", "any", "swapped"]))
    if how == "none":
        return shape, None
    strides = list(c_strides(shape))
    for d, extent in enumerate(shape):
        if extent == 1:  # may be anything
            strides[d] = draw(st.integers(-9, 9))
    if how == "any" and strides:
        strides[draw(st.integers(0, len(strides) - 1))] = draw(st.integers(-3, 30))
    if how == "swapped":
        strides.reverse()
    return shape, tuple(strides)


def is_c_order(shape, strides):
    """NumPy's word on it."""
    if strides is None:
        return True
    view = np.lib.stride_tricks.as_strided(HOST[1024:], shape, [8 * stride for stride in strides])
    return view.flags.c_contiguous


def cuda_memory():
    return weft.DeviceArray(65536, "u1", "cuda:1") if HAS_CUDA else None


# --- The CUDA array interface


def check_cuda_arrays(memory):
    address = memory.ptr if HAS_CUDA else 0x7000_0000

    @given(strided(), TYPES, st.sampled_from([None, 1, 2, 0x5555]), st.booleans(), st.integers(0, 100))
    def any_form(form, typestr, stream, read_only, offset):
        shape, strides = form
        item = np.dtype(typestr).itemsize
        interface = {
            "shape": shape,
            "typestr": typestr,
            "data": (address + offset, read_only),
            "version": 3,
            "strides": None if strides is None else tuple(item * stride for stride in strides),
        }
        if stream is not None:
            interface["stream"] = stream
        array = CudaArray(**interface)
        size_bytes = item * int(np.prod(shape, dtype=int))
        if not is_c_order(shape, strides):
            refused("weft.pack(array)", _core._buffer_of, array, READ)
            refused("contiguous array and copy", _core._buffer_of, array, WRITE)
            return
        if read_only:
            refused("read-only", _core._buffer_of, array, WRITE)
        if size_bytes > 0 and not HAS_CUDA:
            refused("this process has no CUDA", _core._buffer_of, array, READ)
            return
        found = _core._buffer_of(array, READ)
        if size_bytes == 0:
            assert found[:4] == (0, 0, "host", 0), found
        else:
            assert found[:4] == (address + offset, size_bytes, "cuda:1", stream or 0), found
        assert found[4:] == (np.dtype(typestr), shape, array)

    any_form()

    good = {"shape": (4,), "typestr": "<f8", "data": (address, False), "version": 3}
    where = "does not know its address" if HAS_CUDA else "has no CUDA"
    for change, needle in (
        ({"stream": 0}, "0 could be either"),
        ({"stream": -1}, "-1"),
        ({"stream": "1"}, "stream"),
        ({"mask": CudaArray()}, "mask"),
        ({"data": (0, False)}, "null address"),
        ({"data": None}, "without 'data'"),
        ({"data": address}, "'data'"),
        ({"data": ("x", False)}, "'data'"),
        ({"shape": [4]}, "'shape'"),
        ({"shape": (-4,)}, "negative"),
        ({"shape": (2**40, 2**40)}, "too many bytes"),
        ({"shape": (2**70,)}, "'shape'"),
        ({"typestr": "<what"}, "typestr"),
        ({"typestr": "|O"}, "Python objects"),
        ({"typestr": None}, "without 'typestr'"),
        ({"strides": (8, 8)}, "contiguous"),
        ({"data": (4096, False)}, where),
    ):
        refused(needle, _core._buffer_of, CudaArray(**{**good, **change}), READ)
    # The address counts, not the bytes of the buffer protocol.
    refused(where, _core._buffer_of, CudaArrayWithBuffer(**{**good, "data": (4096, False)}), READ)
    broken = CudaArray()
    broken.__cuda_array_interface__ = 5
    refused("no dict", _core._buffer_of, broken, READ)
    refused("requires grad", _core._buffer_of, BrokenCudaArray(), READ)


# --- DLPack


class Both(DlpackArray):
    """As PyTorch's tensors: version 2 of the CUDA interface, which says nothing about streams, and DLPack."""

    @property
    def __cuda_array_interface__(self):
        return {"shape": (4,), "typestr": "<f8", "data": (4096, False), "version": 2}


def check_dlpack_on_the_host():
    address = HOST.ctypes.data

    @given(
        strided(),
        st.sampled_from([None, (1, 0), (1, 9)]),
        st.integers(0, 8),
        st.sampled_from([CPU, CUDA_HOST]),
    )
    def any_form(form, version, offset, device):
        shape, strides = form
        array = DlpackArray(
            address, shape, strides, version=version, byte_offset=8 * offset, device=(device, 0)
        )
        if is_c_order(shape, strides):
            size_bytes = 8 * int(np.prod(shape, dtype=int))
            found = _core._buffer_of(array, WRITE)
            assert found[:2] == ((address + 8 * offset, size_bytes) if size_bytes else (0, 0)), found
            assert found[2:6] == ("host", 0, np.dtype(float), shape), found
            assert array.deleted == 0
            del found
        else:
            refused("weft.pack(array)", _core._buffer_of, array, READ)
        assert array.deleted == 1
        with_version = {"max_version": (1, 1)}
        assert array.asked == ([with_version, {}] if version is None else [with_version])

    any_form()

    @given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 3))
    def any_type(code, bits, lanes):
        array = DlpackArray(address, (3,), dtype=(code, bits, lanes))
        if bits * lanes % 8 != 0:
            refused("bits", _core._buffer_of, array, READ)
        else:
            found = _core._buffer_of(array, READ)
            assert found[1] == 3 * bits * lanes // 8
            assert found[4] is None or found[4].itemsize == bits * lanes // 8
            if (code, bits, lanes) in ((FLOAT, 32, 1), (INT, 16, 1)):
                assert found[4] == {FLOAT: np.float32, INT: np.int16}[code]
            del found
        assert array.deleted == 1

    any_type()
    opaque = 3
    assert _core._buffer_of(DlpackArray(address, (2,), dtype=(opaque, 16, 1)), READ)[4] is None

    for keywords, access, needle in (
        ({"version": (2, 0)}, READ, "DLPack 2.0"),
        ({"flags": 1}, WRITE, "read-only"),
        ({"flags": 2}, WRITE, "copy"),
        ({"shape": (-1,)}, READ, "negative"),
        ({"shape": (2**40, 2**40)}, READ, "too many bytes"),
    ):
        array = DlpackArray(address, **{"shape": (4,), **keywords})
        refused(needle, _core._buffer_of, array, access)
        assert array.deleted == 1, needle
    assert _core._buffer_of(DlpackArray(address, (4,), flags=3), READ)[1] == 32
    assert _core._buffer_of(DlpackArray(address, (4,), deletes=False), READ)[1] == 32

    untaken = DlpackArray(address, (4,), name=b"other")
    refused("not a tensor", _core._buffer_of, untaken, READ)
    refused("DLPack device (9, 0)", _core._buffer_of, DlpackArray(address, (4,), device=(9, 0)), READ)
    refusing = DlpackArray(address, (4,))
    refusing.__class__ = type("Refusing", (DlpackArray,), {"__dlpack__": lambda self, **_: 1 / 0})
    refused("ZeroDivisionError", _core._buffer_of, refusing, READ)

    # NumPy as a producer of its own, by nothing but its __dlpack__.
    class Wrapped:
        def __init__(self, array):
            self.__dlpack__ = array.__dlpack__
            self.__dlpack_device__ = array.__dlpack_device__

    data = np.arange(6.0).reshape(2, 3)
    found = _core._buffer_of(Wrapped(data), WRITE)
    assert found[:3] == (data.ctypes.data, 48, "host") and found[4:6] == (np.dtype(float), (2, 3))
    references = sys.getrefcount(data)
    del found
    assert sys.getrefcount(data) == references - 1


def check_dlpack_on_a_device(memory):
    address = memory.ptr if HAS_CUDA else 4096
    for device, version in ((CUDA, (1, 0)), (CUDA_MANAGED, None)):
        array = DlpackArray(address, (4,), device=(device, 1), version=version)
        if not HAS_CUDA:
            refused("this process has no CUDA", _core._buffer_of, array, READ)
            assert array.asked == []
            continue
        found = _core._buffer_of(array, READ)
        assert found[:3] == (address, 32, "cuda:1")
        # The producer was given a stream of ours, which the buffer names.
        assert found[3] > 2 and all(asked["stream"] == found[3] for asked in array.asked)
        del found
        assert array.deleted == 1
    if HAS_CUDA:
        check_that_its_device_is_current(address)
    both = Both(address, (4,), device=(CUDA, 1))
    if HAS_CUDA:
        assert _core._buffer_of(both, READ)[0] == address and len(both.asked) == 1
    else:
        refused("this process has no CUDA", _core._buffer_of, both, READ)


# --- DLPack's table of C functions


def check_the_exchange_table(memory):
    address = HOST.ctypes.data
    exchanged = type_with(exchange_table())

    @given(strided(), st.integers(0, 8))
    def any_form(form, offset):
        shape, strides = form
        array = exchanged(address, shape, strides, byte_offset=8 * offset)
        if is_c_order(shape, strides):
            size_bytes = 8 * int(np.prod(shape, dtype=int))
            found = _core._buffer_of(array, WRITE)
            assert found[:2] == ((address + 8 * offset, size_bytes) if size_bytes else (0, 0)), found
            assert found[2:6] == ("host", 0, np.dtype(float), shape), found
            assert (array.exports, array.asked, array.deleted) == (1, [], 0)
            del found
        else:
            refused("weft.pack(array)", _core._buffer_of, array, READ)
        assert array.deleted == 1

    any_form()

    for keywords, access, needle in (
        ({"version": (2, 0)}, READ, "DLPack 2.0"),
        ({"flags": 1}, WRITE, "read-only"),
        ({"flags": 2}, WRITE, "copy"),
        ({"device": (9, 0)}, READ, "DLPack device (9, 0)"),
    ):
        array = exchanged(address, (4,), **keywords)
        refused(needle, _core._buffer_of, array, access)
        assert array.deleted == 1, needle
    refused(
        "TypeError",
        _core._buffer_of,
        type_with(exchange_table(managed_from_object=REFUSES))(address, (4,)),
        READ,
    )

    # PyTorch's table does not say that a tensor is a conjugate of its memory; its __dlpack__ refuses.
    array = exchanged(address, (4,), dtype=(COMPLEX, 128, 1))
    assert _core._buffer_of(array, READ)[1] == 64 and (array.exports, len(array.asked)) == (1, 1)
    assert array.deleted == 2
    for missing in ("managed_from_object", "current_work_stream"):
        array = type_with(exchange_table(**{missing: None}))(address, (4,))
        assert _core._buffer_of(array, READ)[1] == 32 and (array.exports, len(array.asked)) == (0, 1)

    # An older table behind one of another major version, and none that this version can read.
    newer = type_with(exchange_table(major=2, previous=ctypes.addressof(exchanged.table)))
    array = newer(address, (4,))
    assert _core._buffer_of(array, READ)[1] == 32 and (array.exports, array.asked) == (1, [])
    for other in (type_with(exchange_table(major=2)), type_with(exchange_table(), b"other")):
        array = other(address, (4,))
        # As without a table. The CUDA array interface raises.
        assert _core._buffer_of(array, READ)[1] == 32 and (array.exports, len(array.asked)) == (0, 1)

    address = memory.ptr if HAS_CUDA else 4096
    for device in (CUDA, CUDA_MANAGED):
        for stream in (None, 1, 2, 0x5555):
            ExchangedArray.work_stream = stream
            array = exchanged(address, (4,), device=(device, 1))
            if HAS_CUDA:
                assert _core._buffer_of(array, READ)[:4] == (address, 32, "cuda:1", stream or 1)
            else:
                refused("this process has no CUDA", _core._buffer_of, array, READ)
            assert array.deleted == 1 and array.asked == []


class OfTheCurrentDevice(DlpackArray):
    """As PyTorch's tensors, which are given away only while their device is the thread's current one."""

    def __dlpack__(self, **keywords):
        self.context = context_of("cuCtxGetCurrent")
        return super().__dlpack__(**keywords)


def context_of(function, *arguments):
    context = ctypes.c_void_p()
    assert getattr(ctypes.CDLL("libcuda.so.1"), function)(ctypes.byref(context), *arguments) == 0
    return context.value


def check_that_its_device_is_current(address):
    before = context_of("cuCtxGetCurrent")
    array = OfTheCurrentDevice(address, (4,), device=(CUDA, 1))
    _core._buffer_of(array, READ)
    assert array.context == context_of("cuDevicePrimaryCtxRetain", 1)
    assert context_of("cuCtxGetCurrent") == before
    assert ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxRelease_v2(1) == 0


# --- Tensors that require grad


class GradTensor(DlpackArray):
    """As PyTorch's: its memory is given only after detach(), and its device and flag always."""

    requires_grad = True

    def __init__(self, plain):
        self.plain, self.detached = plain, 0
        self.device = plain.device

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")

    def __dlpack__(self, **_):
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    def detach(self):
        self.detached += 1
        return self.plain


async def check_tensors_that_require_grad(memory):
    address = HOST.ctypes.data
    for access in (READ, WRITE):
        tensor = GradTensor(DlpackArray(address, (4,)))
        found = _core._buffer_of(tensor, access)
        assert found[:3] == (address, 32, "host") and tensor.detached == 1
        del found
        assert tensor.plain.deleted == 1
    HOST[:4] = range(4)
    copied = weft.DeviceArray(4, float, "host")
    await copied.copy_from(GradTensor(DlpackArray(address, (4,))))
    assert list(np.asarray(copied)) == [0, 1, 2, 3]
    # What only looks like one: it is not asked to detach.
    odd = DlpackArray(address, (4,))
    odd.requires_grad = "yes"
    assert _core._buffer_of(odd, READ)[1] == 32
    if HAS_CUDA:
        tensor = GradTensor(DlpackArray(memory.ptr, (4,), device=(CUDA, 1)))
        assert _core._buffer_of(tensor, READ)[:3] == (memory.ptr, 32, "cuda:1")


# --- Order


def check_that_a_refusal_names_the_transpose():
    address = HOST.ctypes.data
    refused("array.T", _core._buffer_of, DlpackArray(address, (3, 4), (1, 3)), READ)
    refused("array.T", _core._buffer_of, np.zeros((3, 4), order="F"), READ)
    refused("receive into", _core._buffer_of, np.zeros((3, 4), order="F"), WRITE)
    column_major = {"shape": (3, 4), "typestr": "<f8", "strides": (8, 24), "data": (64, False), "version": 3}
    refused("array.T", _core._buffer_of, CudaArray(**column_major), READ)
    try:
        _core._buffer_of(DlpackArray(address, (3, 4), (8, 2)), READ)
    except weft.Error as error:
        assert "array.T" not in str(error) and "weft.pack(array)" in str(error)


# --- Our own arrays, as other libraries take them


class Borrowed:
    """What a consumer of a DLPack capsule takes out of it."""

    def __init__(self, capsule, versioned):
        pointer = take_out_of(capsule, b"dltensor_versioned" if versioned else b"dltensor")
        self.managed = (ManagedVersioned if versioned else Managed).from_address(pointer)

    def give_back(self):
        self.managed.deleter(ctypes.addressof(self.managed))


def check_exports():
    kind, device = ("cuda:1", (CUDA, 1)) if HAS_CUDA else ("host", (CPU, 0))
    array = weft.DeviceArray((3, 4), np.int16, kind)
    references = sys.getrefcount(array)
    assert array.__dlpack_device__() == device
    for versioned in (True, False):
        keywords = {"max_version": (1, 3)} if versioned else {}
        array.__dlpack__(**keywords)  # not taken: gives back by itself
        assert sys.getrefcount(array) == references
        borrowed = Borrowed(array.__dlpack__(**keywords), versioned)
        tensor = borrowed.managed.tensor
        assert (tensor.data, tensor.ndim, tensor.byte_offset) == (array.ptr, 2, 0)
        assert (tensor.shape[:2], tensor.strides[:2]) == ([3, 4], [4, 1])
        assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (INT, 16, 1)
        assert (tensor.device.type, tensor.device.ordinal) == device
        if versioned:
            assert (borrowed.managed.major, borrowed.managed.flags) == (1, 0)
        assert sys.getrefcount(array) == references + 1
        borrowed.give_back()
        assert sys.getrefcount(array) == references
    refused("no element type", weft.DeviceArray(3, "V3", kind).__dlpack__, error=BufferError)
    refused("no element type", weft.DeviceArray(3, ">i4", kind).__dlpack__, error=BufferError)
    refused("keyword", lambda: array.__dlpack__(1), error=TypeError)
    if not HAS_CUDA:
        refused("cuda", weft.DeviceArray, 3, float, "cuda:0")
        refused("cuda", weft.Stream, "cuda:0")
        refused("cuda", weft.stream_done, 1)
        return
    assert array.__cuda_array_interface__ == {
        "shape": (3, 4),
        "typestr": "<i2",
        "data": (array.ptr, False),
        "version": 3,
        "strides": None,
        "stream": None,
    }
    stream = weft.Stream("cuda:1")
    assert stream.__cuda_stream__() == (0, stream.handle)
    assert array.on(stream).__cuda_array_interface__["stream"] == stream.handle
    found = _core._buffer_of(CudaArray(**array.on(stream).__cuda_array_interface__), WRITE)
    assert found[:4] == (array.ptr, 24, "cuda:1", stream.handle)
    for allowed in (None, -1, 1, 2, stream.handle):
        array.__dlpack__(stream=allowed)
    for forbidden in (0, -2, "1"):
        refused("__dlpack__ takes", array.__dlpack__, stream=forbidden, error=ValueError)


async def main():
    memory = cuda_memory()
    check_cuda_arrays(memory)
    check_dlpack_on_the_host()
    check_dlpack_on_a_device(memory)
    check_the_exchange_table(memory)
    check_that_a_refusal_names_the_transpose()
    await check_tensors_that_require_grad(memory)
    check_exports()
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
