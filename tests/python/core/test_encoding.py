"""The encoding of values: whatever goes in comes out, and whatever arrives never crashes."""

from __future__ import annotations

import array
import math
import sys
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


@given(st.sampled_from("bBhHiIlLqQfd"), st.integers(0, 1000))
def test_standard_arrays_come_back(code: str, size: int) -> None:
    value = array.array(code, [n % 100 for n in range(size)])
    encoded = _core._encode(value)
    assert len(encoded) == 10 + size * value.itemsize, "pickled"
    back = _core._decode(encoded)
    assert type(back) is array.array and back.typecode == code and back == value
    back.append(1)  # it owns its memory
    first, second = _core._decode(_core._encode([value, value]))
    assert first is second and first == value


def test_standard_arrays_of_text_come_back() -> None:
    value = array.array("u", "text")
    assert _core._decode(_core._encode(value)) == value


@pytest.mark.parametrize(("code", "size"), [(b"u", 4), (b"\xff", 4), (b"d", 7), (b"d", 1 << 40)])
def test_damaged_standard_arrays_are_refused(code: bytes, size: int) -> None:
    tag = _core._encode(array.array("d"))[:1]
    with pytest.raises(weft.Error, match="damaged"):
        _core._decode(tag + code + size.to_bytes(8, "little") + bytes(7))


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


# The tag of an exception in the place of a value, ValueTag::kRaised.
RAISED_TAG = 32


def raised(*texts: bytes) -> bytes:
    return bytes([RAISED_TAG]) + b"".join(len(text).to_bytes(8, "little") + text for text in texts)


@pytest.mark.parametrize("original", [b"", b"\xff", _core._encode(3), _core._encode((int, None, (), None))])
def test_an_exception_whose_original_is_damaged(original: bytes) -> None:
    with pytest.raises(weft.RemoteError, match="ValueError: boom") as told:
        _core._decode(raised(b"ValueError", b"boom", b"  here\n", original))
    assert type(told.value) is weft.RemoteError and told.value.traceback_text == "  here\n"


def test_an_exception_in_the_place_of_a_value() -> None:
    original = _core._encode((KeyError, None, ("k",), None))
    data = raised(b"KeyError", b"'k'", b"  here\n", original)
    with pytest.raises(KeyError) as told:
        _core._decode(data)
    assert told.value.args == ("k",) and isinstance(told.value, weft.RemoteError)
    for size in range(1, len(data)):
        with pytest.raises(weft.Error) as damaged:
            _core._decode(data[:size])
        assert damaged.value.code == "corrupt data", damaged.value


def test_a_module_that_must_not_be_imported_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "barred_module", None)
    with pytest.raises(weft.Error, match="ModuleNotFoundError"):
        _core._imported("barred_module:name")


def decode_anything(data: bytes) -> None:
    try:
        _core._decode(data)
    except weft.RemoteError:
        assert RAISED_TAG in data
    except weft.Error as error:
        assert (
            "ends too early" in str(error)
            or "damaged" in str(error)
            or "no job is running" in str(error)
            or "is not on this PE" in str(error)
        )


# Pickle runs what its bytes say, and only peers of the same job send it: its own bytes are left alone here.
PICKLE_TAGS = {_core._encode(2**70)[0], _core._encode([{1}])[0]}


@settings(max_examples=1000)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    if PICKLE_TAGS.isdisjoint(data):
        decode_anything(data)


@settings(max_examples=300)
@given(VALUES | hnp.arrays(hnp.integer_dtypes(), hnp.array_shapes()), st.data())
def test_damaged_values_are_refused(value: Any, data: st.DataObject) -> None:
    encoded = bytearray(_core._encode(value))
    if not PICKLE_TAGS.isdisjoint(encoded):
        return
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(encoded) - 1))
        encoded[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte not in PICKLE_TAGS))
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
    SCALARS.filter(lambda value: _core._encode(value)[0] not in PICKLE_TAGS),
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


def back_of(value: Any) -> Any:
    return _core._decode(_core._encode(value))


class Node:
    """Travels by pickle."""

    def __init__(self) -> None:
        self.links: list[Any] = []


def test_an_object_that_occurs_twice_arrives_as_one() -> None:
    array, text, inner = np.arange(5), "long" * 1000, [1]
    back = back_of([inner, {"again": inner}, (inner,), array, array, text, text, b"x" * 5000, ()])
    assert back[0] == [1] and back[0] is back[1]["again"] is back[2][0]
    assert np.array_equal(back[3], array) and back[3] is back[4] and back[3].flags.writeable
    assert back[5] == text and back[5] is back[6] and back[7:] == [b"x" * 5000, ()]
    back[0].append(2)
    assert back[1] == {"again": [1, 2]}


def test_objects_inside_and_outside_of_pickled_ones_are_one() -> None:
    array, node = np.zeros(3), Node()
    node.links = [node, array]
    first, second, same = back_of((node, array, node))
    assert type(first) is Node and first is same and first.links[0] is first and first.links[1] is second


def test_cycles_arrive_as_cycles() -> None:
    loop: list[Any] = []
    loop.append(loop)
    back = back_of(loop)
    assert len(back) == 1 and back[0] is back
    nodes: list[dict[str, Any]] = [{"id": i, "near": []} for i in range(100)]
    for i, node in enumerate(nodes):
        node["near"] += [nodes[i - 1], nodes[(i + 1) % 100]]
    encoded = _core._encode(nodes)
    assert len(encoded) < 10_000
    ring = _core._decode(encoded)
    assert all(node["near"][0] is ring[i - 1] for i, node in enumerate(ring))
    inside: tuple[Any, ...] = ([],)
    inside[0].append(inside)
    again = back_of(inside)
    assert again[0][0] is again


@pytest.mark.parametrize("make", [lambda x: [x, x], lambda x: (x, x), lambda x: {"a": x, "b": x}])
def test_shared_containers_do_not_explode(make: Any) -> None:
    value: Any = []
    for _ in range(50):
        value = make(value)
    assert len(_core._encode(value)) < 2000
    back = back_of(value)
    for _ in range(50):
        left, right = back.values() if isinstance(back, dict) else back
        assert left is right
        back = left


def test_long_text_and_bytes_are_sent_once() -> None:
    for leaf in ("x" * 10_000, b"x" * 10_000):
        assert len(_core._encode([leaf] * 100)) < 20_000
        assert back_of([leaf] * 100) == [leaf] * 100


def test_values_without_shared_objects_keep_their_forms() -> None:
    """And the fast way: no pickle."""
    values = [[[i, float(i)], {"a": (i, None)}, np.arange(i)] for i in range(40)]
    assert _core._encode(values)[0] == _core._encode([])[0]
    assert _core._encode([[()], [()], ((),)])[0] == _core._encode([])[0]  # there is one empty tuple


def test_separate_values_share_nothing() -> None:
    shared = [1]
    first, second = back_of(_core._separate([shared, [shared, shared]]))
    assert first == [1] and second[0] is second[1] and first is not second[0]
    (values, other) = back_of((_core._separate([shared, shared]), shared))
    assert values == [[1], [1]] and values[0] is not values[1] and other == [1]


@given(st.data())
def test_shared_values_come_back(data: st.DataObject) -> None:
    """Values that are made of one another: what comes back has the same text, which shows cycles too."""
    pool: list[Any] = [1, "a", np.arange(3), [], {}, Node()]
    for _ in range(data.draw(st.integers(1, 12))):
        parts = data.draw(st.lists(st.sampled_from(range(len(pool))), max_size=4))
        kind = data.draw(st.sampled_from([list, tuple, dict]))
        values = [pool[i] for i in parts]
        pool.append({str(i): one for i, one in enumerate(values)} if kind is dict else kind(values))
    for one in pool:
        if isinstance(one, list) and data.draw(st.booleans()):
            one.append(data.draw(st.sampled_from(pool)))
    back = back_of(pool)
    assert repr(back).replace(hex(id(back[5])), "") == repr(pool).replace(hex(id(pool[5])), "")
    shown = [i for i, one in enumerate(pool) if i >= 2 and not (isinstance(one, tuple) and not one)]
    for i in shown:
        for j in shown:
            assert (pool[i] is pool[j]) == (back[i] is back[j])


@pytest.mark.parametrize("number", [0, 7, -1, 2**80])
def test_a_part_that_is_not_there_is_refused(number: int) -> None:
    with pytest.raises(weft.Error, match="damaged"):
        _core._part(number)
