"""The encoding of values: whatever goes in comes out, and whatever arrives never crashes."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft import _core

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text()
    | st.text(st.characters(), min_size=250)
    | st.binary(max_size=600)
)
HASHABLE = st.integers() | st.text() | st.booleans() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(HASHABLE, inner)
        | st.frozensets(HASHABLE)
    ),
    max_leaves=30,
)
DTYPES = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes(endianness="?")
    | hnp.floating_dtypes(endianness="?")
    | hnp.complex_number_dtypes()
    | hnp.unicode_string_dtypes(max_len=5)
    | hnp.datetime64_dtypes(endianness="=")
)

# The same examples in every run, and no time limits: CI machines are busy.
settings.register_profile("weft", deadline=None, derandomize=True)
settings.load_profile("weft")


def same_types(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same_types, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_types(a[key], b[key]) for key in a)
    return True


@given(VALUES)
def test_values_come_back(value: Any) -> None:
    back = _core._decode(_core._encode(value))
    assert back == value
    assert same_types(back, value)


@given(st.data())
def test_arrays_come_back(data: st.DataObject) -> None:
    array = data.draw(hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, min_side=0, max_dims=4, max_side=6)))
    if array.ndim > 0:
        view = array[data.draw(hnp.basic_indices(array.shape, allow_ellipsis=False))]
        array = view if isinstance(view, np.ndarray) else array
    if data.draw(st.booleans()):
        array = array.T
    back = _core._decode(_core._encode(array))
    assert isinstance(back, np.ndarray)
    # Pickling may turn the other byte order into this machine's.
    assert back.dtype.newbyteorder("=") == array.dtype.newbyteorder("=") and back.shape == array.shape
    assert back.astype(array.dtype).tobytes() == array.tobytes()
    assert back.flags.writeable and not np.shares_memory(back, array)


@given(hnp.arrays(hnp.scalar_dtypes(), ()))
def test_numpy_scalars_come_back(array: np.ndarray) -> None:
    scalar = array[()]
    back = _core._decode(_core._encode(scalar))
    assert type(back) is type(scalar)
    assert np.asarray(back).tobytes() == np.asarray(scalar).tobytes()


def test_nan_and_signed_zero() -> None:
    assert math.isnan(_core._decode(_core._encode(math.nan)))
    assert math.copysign(1, _core._decode(_core._encode(-0.0))) == -1


def test_released_views_are_refused() -> None:
    """Their memory may have been freed."""
    view = memoryview(bytearray(1 << 20))
    view.release()
    with pytest.raises(ValueError, match="released memoryview"):
        _core._encode(view)


def test_views_that_are_released_while_other_values_are_encoded() -> None:
    memory = bytearray(b"a" * 5000)
    view = memoryview(memory)

    class Releasing:
        def __reduce__(self) -> tuple[type, tuple[()]]:
            view.release()
            with pytest.raises(BufferError):
                memory.clear()  # the encoder holds it
            return list, ()

    assert _core._decode(_core._encode([view, Releasing()])) == [b"a" * 5000, []]


def decode_anything(data: bytes) -> None:
    try:
        _core._decode(data)
    except weft.Error as error:
        assert (
            "damaged" in str(error) or "no job is running" in str(error) or "is not on this PE" in str(error)
        )


# Pickle runs what its bytes say, and only peers of the same job send it: its own bytes are left alone here.
PICKLE_TAG = _core._encode(2**70)[0]


@settings(max_examples=1000)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    if PICKLE_TAG not in data:
        decode_anything(data)


@settings(max_examples=300)
@given(VALUES | hnp.arrays(hnp.integer_dtypes(), hnp.array_shapes()), st.data())
def test_damaged_values_are_refused(value: Any, data: st.DataObject) -> None:
    encoded = bytearray(_core._encode(value))
    if PICKLE_TAG in encoded:
        return
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(encoded) - 1))
        encoded[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != PICKLE_TAG))
    decode_anything(bytes(encoded))


@given(VALUES, st.data())
def test_cut_off_values_are_refused(value: Any, data: st.DataObject) -> None:
    encoded = _core._encode(value)
    cut = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    with pytest.raises((weft.Error, EOFError, ValueError)) as refused:
        _core._decode(cut)
    assert refused.type is weft.Error
    assert "damaged" in str(refused.value)


# Its encoding needs a job; NumPy's scalars have the tag behind it.
DEVICE_ARRAY_TAG = _core._encode(np.float64(1))[0] - 1
FLOAT64, OTHER_TYPE, EMULATED = 12, 255, 2


def encoded_device_array(form: int, extents: list[int], kind: int, rest: bytes) -> bytes:
    numbers = b"".join(extent.to_bytes(8, "little", signed=True) for extent in extents)
    return bytes([DEVICE_ARRAY_TAG, form, len(extents), 0]) + numbers + bytes([kind]) + rest


def why_refused(encoded: bytes) -> str:
    with pytest.raises(weft.Error) as refused:
        _core._decode(encoded)
    return str(refused.value)


@given(
    st.integers(0, 255),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3), max_size=40),
    st.integers(0, 255),
    SCALARS.filter(lambda value: _core._encode(value)[0] != PICKLE_TAG),
)
def test_device_arrays_that_make_no_sense_are_refused(
    form: int, extents: list[int], kind: int, dtype: Any
) -> None:
    for which in ((0).to_bytes(4, "little"), b""):
        why = why_refused(encoded_device_array(form, extents, kind, which + _core._encode(dtype)))
        assert "damaged" in why or "no job is running" in why


def test_device_arrays_without_their_buffer_are_refused() -> None:
    first = (0).to_bytes(4, "little")
    assert "did not come with it" in why_refused(encoded_device_array(FLOAT64, [3], EMULATED, first))
    other_type = first + _core._encode(5)
    assert "no such type" in why_refused(encoded_device_array(OTHER_TYPE, [3], EMULATED, other_type))
    assert "no such kind" in why_refused(encoded_device_array(FLOAT64, [3], 77, first))
    # One without elements has none, and is made where its job is.
    assert "no job is running" in why_refused(encoded_device_array(FLOAT64, [0], EMULATED, b""))
