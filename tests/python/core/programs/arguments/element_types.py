"""Element types that NumPy lacks, through every way that arrays travel; checks itself.

    element_types.py own|package [cuda]

`own`: as without the package ml_dtypes. `package`: with it; exits with 77 if it is not there. `cuda`: the
device is the stand-in driver's.
"""

import ctypes
import sys

import numpy as np
from refusing import refused
from standins import (
    CUDA,
    CudaArray,
    DlpackArray,
    Managed,
    ManagedVersioned,
    take_out_of,
)

import weft
from weft import _core

HAS_PACKAGE = sys.argv[1] == "package"
KIND = "cuda" if "cuda" in sys.argv else "emulated"
if HAS_PACKAGE:
    try:
        import ml_dtypes
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(77)
else:
    sys.modules["ml_dtypes"] = None  # importing it raises ImportError

# By name: (code, bits, lanes) of DLPack 1.1, and the size of an element in bytes.
TYPES = {
    "bfloat16": ((4, 16, 1), 2),
    "float8_e3m4": ((7, 8, 1), 1),
    "float8_e4m3": ((8, 8, 1), 1),
    "float8_e4m3b11fnuz": ((9, 8, 1), 1),
    "float8_e4m3fn": ((10, 8, 1), 1),
    "float8_e4m3fnuz": ((11, 8, 1), 1),
    "float8_e5m2": ((12, 8, 1), 1),
    "float8_e5m2fnuz": ((13, 8, 1), 1),
    "float8_e8m0fnu": ((14, 8, 1), 1),
    "float4_e2m1fn_x2": ((17, 4, 2), 1),
    "complex32": ((5, 32, 1), 4),
}
ALIVE: list[object] = []
SIZES = (0, 1, 6, 100_000)


def dtype_of(name):
    """What the type is in NumPy."""
    scalar = getattr(ml_dtypes, name, None) if HAS_PACKAGE else None
    return np.dtype(scalar) if scalar is not None else np.dtype([(name, f"u{TYPES[name][1]}")])


def bits(size, name, start=0):
    return (np.arange(size * TYPES[name][1]) + start).astype(np.uint8)


def host_array(raw, name, shape=None):
    """An array of another library over the bytes."""
    array = DlpackArray(raw.ctypes.data, shape or (raw.size // TYPES[name][1],), dtype=TYPES[name][0])
    ALIVE.append((raw, array))  # a stand-in does not keep itself alive until its deleter is called
    return array


def numpy_array(raw, name):
    return raw.view(dtype_of(name))


def raw_of(array):
    return np.ascontiguousarray(array).view(np.uint8)


def check_names():
    for name, (code, size) in TYPES.items():
        assert weft.DeviceArray(3, name, "host").dtype == dtype_of(name), name
        assert weft.DeviceArray(3, dtype_of(name), "host").nbytes == 3 * size
        assert f" {name} of shape" in repr(weft.DeviceArray(3, name, "host"))
        raw = bits(6, name)
        found = _core._buffer_of(host_array(raw, name, (2, 3)), True)
        assert found[:2] == (raw.ctypes.data, 6 * size) and found[4:6] == (dtype_of(name), (2, 3)), name
        for versioned in (True, False):
            array = weft.DeviceArray((2, 3), name, "host")
            capsule = array.__dlpack__(**({"max_version": (1, 1)} if versioned else {}))
            pointer = take_out_of(capsule, b"dltensor_versioned" if versioned else b"dltensor")
            managed = (ManagedVersioned if versioned else Managed).from_address(pointer)
            tensor = managed.tensor
            assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == code, name
            assert tensor.strides[:2] == [3, 1]
            managed.deleter(ctypes.addressof(managed))
    refused("'bfloat17'", weft.DeviceArray, 3, "bfloat17", "host", error=TypeError)
    # One bit pattern of 4 bits is no whole number of bytes.
    refused("4 bits", _core._buffer_of, DlpackArray(64, (2,), dtype=(17, 4, 1)), False)
    # A record that is none of them.
    assert weft.DeviceArray(3, [("bfloat16", "u4")], "host").nbytes == 12


def check_cuda_arrays(memory):
    """CuPy says only the size in the typestr, and the type in its attribute dtype."""
    for name, (_, size) in TYPES.items():
        for typestr in (f"<V{size}", "<f1" if size == 1 else "|V2"):
            array = CudaArray(shape=(2,), typestr=typestr, data=(memory.ptr, False), version=3)
            array.dtype = dtype_of(name)
            if array.dtype.itemsize in (1, int(typestr[2:])):
                assert _core._buffer_of(array, False)[4] == dtype_of(name), name
    array = CudaArray(shape=(2,), typestr="<V2", data=(memory.ptr, False), version=3)
    array.dtype = "float8"
    assert _core._buffer_of(array, False)[4] == np.dtype("V2")
    array.dtype = np.dtype("f8")
    assert _core._buffer_of(array, False)[4] == np.dtype("V2"), "of another size"


class User(weft.Chare):
    def __init__(self):
        self.room = None

    async def back(self, name, array):
        """What came, as the bytes and the type of it."""
        assert array.dtype == dtype_of(name), (name, array.dtype)
        return array

    def prepare(self, name, size, kind):
        self.room = weft.DeviceArray(size, name, kind)

    @weft.post_entry("posted")
    def post_posted(self, name, array):
        size = array.shape[0]
        assert array.dtype == dtype_of(name)
        assert array.nbytes == size * TYPES[name][1]
        other = "bfloat16" if name != "bfloat16" else "float8_e5m2"
        for wrong in (np.uint16, np.float64, other):
            refused("reinterpreted", array.into, weft.DeviceArray(size * 4, wrong, "host"))
        array.into(weft.DeviceArray(size * 4, np.uint8, "host"))  # plain bytes take every type
        array.into(self.room)

    async def posted(self, name, array):
        assert array is self.room
        return raw_of(await array.to_host())

    async def channels(self, name):
        channel = weft.Channel(self, self.proxy[1 - self.index])
        for size in SIZES:
            raw = bits(size, name, self.index)
            sent = channel.send(host_array(raw, name))
            theirs = np.zeros_like(raw)
            await channel.recv(into=host_array(theirs, name))
            assert np.array_equal(theirs, bits(size, name, 1 - self.index))
            await sent
            mine = await weft.DeviceArray(size, name, KIND).copy_from(host_array(raw, name))
            sent = channel.send(mine)
            received = await channel.recv(into=weft.DeviceArray(size, name, KIND))
            assert np.array_equal(raw_of(await received.to_host()), bits(size, name, 1 - self.index))
            await sent


async def check_values(user, name, size):
    raw = bits(size, name)
    # Of another library, in host memory and in device memory.
    came = await user.back.call(name, weft.nocopy(host_array(raw, name)))
    assert type(came) is weft.DeviceArray and came.dtype == dtype_of(name)
    assert np.array_equal(raw_of(np.asarray(came)), raw)
    mine = await weft.DeviceArray(size, name, KIND).copy_from(host_array(raw, name))
    came = await user.back.call(name, mine)
    assert came.dtype == dtype_of(name) and (size == 0 or came.kind.startswith(KIND))
    assert np.array_equal(raw_of(await came.to_host()), raw)
    # NumPy's own, as values and in place.
    array = numpy_array(raw, name)
    for sent in (array, weft.nocopy(array)):
        came = await user.back.call(name, sent)
        assert type(came) is np.ndarray and came.dtype == dtype_of(name)
        assert np.array_equal(raw_of(came), raw)
    if size == 6:
        for shaped in (array.reshape(2, 3).T, array.reshape(3, 2)[:, 1], array[::2]):
            came = await user.back.call(name, shaped)
            assert came.shape == shaped.shape and np.array_equal(raw_of(came), raw_of(shaped))
            assert came.flags.f_contiguous or not shaped.flags.f_contiguous


async def check_landing(user, name):
    for kind in ("host", KIND):
        await user.prepare.call(name, 1000, kind)
        raw = bits(1000, name)
        came = await user.posted.call(name, weft.nocopy(host_array(raw, name)))
        assert np.array_equal(came, raw)
        came = await user.posted.call(name, numpy_array(raw, name))
        assert np.array_equal(came, raw)


async def main():
    check_names()
    if KIND == "cuda":
        check_cuda_arrays(weft.DeviceArray(64, "u1", "cuda"))
        memory = weft.DeviceArray(64, "u1", "cuda:1")
        tensor = DlpackArray(memory.ptr, (4,), dtype=TYPES["bfloat16"][0], device=(CUDA, 1))
        assert _core._buffer_of(tensor, True)[4] == dtype_of("bfloat16")
    # A different type, or none that Weft knows.
    array = weft.DeviceArray(4, "bfloat16", "host")
    refused("same form", array.copy_from, np.zeros(4, np.uint16))
    raw = bits(4, "bfloat16")
    unknown = DlpackArray(raw.ctypes.data, (4,), dtype=(200, 16, 1))
    refused("neither NumPy nor Weft", weft.Array(User, 1)[0].back, "", weft.nocopy(unknown))
    users = weft.Array(User, 2)
    for name in TYPES:
        for size in SIZES:
            await check_values(users[1], name, size)
        await check_landing(users[1], name)
        await users.channels.call(name)
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
