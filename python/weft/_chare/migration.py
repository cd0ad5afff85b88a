"""The state of a chare that moves to another PE, as the extension packs and unpacks it.

The state is what pickling the object would take: ``__getstate__()``, else its attributes. It is pickled with
protocol 5. The chare itself, which its state may name (bound methods do), is there on the new PE before its
state. A channel is pickled as the name of its end, which travels by itself. The memory of NumPy arrays stays
out of the pickle, and device arrays travel beside it, from device to device.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import reprlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from weft import _core
from weft._public import name_public_module


class _Pickler(pickle.Pickler):
    def __init__(self, chare: _core.Chare, file: io.BytesIO, buffers: list[pickle.PickleBuffer]) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffers.append)
        self.device_arrays: list[object] = []
        self._chare = chare

    def reducer_override(self, obj: Any) -> Any:
        if obj is self._chare:
            return _itself, ()
        if type(obj) is _core.Channel:
            return _core._moved_channel, (obj._key(),)
        kind = _kind_of(obj)
        if kind is None:
            return NotImplemented
        self.device_arrays.append(obj)
        return _take, (len(self.device_arrays) - 1, kind)


def _kind_of(obj: Any) -> str | None:
    """How a device array is made again on its new PE; None for objects that pickle as they are.

    Subclasses, as torch.nn.Parameter, and tensors that record gradients have more state than their memory, so
    their libraries pickle them.
    """
    kind = type(obj)
    if kind is _core.DeviceArray:
        return "weft"
    if kind is _type_of("cupy", "ndarray"):
        return "cupy"
    if kind is _type_of("torch", "Tensor") and obj.is_cuda and not obj.requires_grad:
        return "torch"
    return None


def _type_of(module: str, name: str) -> object:
    """The type, if the program has imported the module. A type that is not known equals no object's."""
    return getattr(sys.modules.get(module), name, _kind_of)


def _as_cupy(array: Any) -> Any:
    return sys.modules["cupy"].asarray(array)


def _as_torch(array: Any) -> Any:
    return sys.modules["torch"].from_dlpack(array)


_MAKERS: dict[str, Callable[[Any], Any]] = {"weft": lambda array: array, "cupy": _as_cupy, "torch": _as_torch}

# The device arrays of the state that is being unpacked, and the chare that gets it.
_arrived: list[Any] = []
_arriving: _core.Chare | None = None


def _itself() -> Any:
    return _arriving


def _take(which: int, kind: str) -> Any:
    if kind in ("cupy", "torch"):
        __import__(kind)
    return _MAKERS[kind](_arrived[which])


# Checkpoints name them.
name_public_module("weft", [_itself, _take])


def pack_state(chare: _core.Chare) -> tuple[bytes, list[pickle.PickleBuffer], list[object]]:
    """The pickled state, the memory that it leaves out, and its device arrays."""
    file = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    pickler = _Pickler(chare, file, buffers)
    pickler.dump(_state_of(chare))
    return file.getvalue(), buffers, pickler.device_arrays


def unpack_state(
    chare: _core.Chare, pickled: memoryview, buffers: list[object], device_arrays: list[object]
) -> None:
    """Gives the object, which has no state yet, what pack_state has packed."""
    global _arrived, _arriving
    outer = _arrived, _arriving
    _arrived, _arriving = device_arrays, chare
    try:
        state = pickle.loads(pickled, buffers=buffers)
    finally:
        _arrived, _arriving = outer
    _set_state(chare, state)


def culprit(chare: _core.Chare) -> str:
    """Which attribute cannot travel, and what in it: ``handlers['open']``. Empty if that is not known."""
    state = _state_of(chare)
    parts = [part for part in (state if isinstance(state, tuple) else (state,)) if isinstance(part, dict)]
    for attributes in parts:
        for name, value in attributes.items():
            error = _obstacle(chare, value)
            if error is not None:
                # If a value is nested too deeply, no part of it is to blame.
                return str(name) if isinstance(error, RecursionError) else f"{name}{_place_in(chare, value)}"
    return ""


def _obstacle(chare: _core.Chare, value: object) -> Exception | None:
    try:
        _Pickler(chare, io.BytesIO(), []).dump(value)
    except Exception as error:
        return error
    return None


def _place_in(chare: _core.Chare, value: object, depth: int = 4) -> str:
    """The first part of a value that cannot travel, down to some depth."""
    parts: list[tuple[str, object]] = []
    if isinstance(value, dict):
        parts = [(f"[{_short.repr(key)}]", item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"[{index}]", item) for index, item in enumerate(value)]
    elif not isinstance(value, (type, ModuleType)) and isinstance(getattr(value, "__dict__", None), dict):
        parts = [(f".{name}", item) for name, item in vars(value).items()]
    if depth > 0:
        for place, part in parts:
            if _obstacle(chare, part) is not None:
                return place + _place_in(chare, part, depth - 1)
    return ""


_short = reprlib.Repr()


def _state_of(chare: Any) -> object:
    getstate = getattr(type(chare), "__getstate__", None)
    if getstate is not None:  # of the class, or object's, which Python has since 3.11
        return getstate(chare)
    # As object.__getstate__ does since Python 3.11, with the names of the slots as pickle finds them.
    names = copyreg._slotnames(type(chare))  # type: ignore[attr-defined]
    slots = {name: getattr(chare, name) for name in names if hasattr(chare, name)}
    attributes = getattr(chare, "__dict__", None)
    return (attributes, slots) if slots else attributes


def _set_state(chare: Any, state: Any) -> None:
    if state is None:
        return
    setstate = getattr(type(chare), "__setstate__", None)
    if setstate is not None:
        setstate(chare, state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        chare.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(chare, name, value)
