"""Exceptions that travel between chares.

An exception travels as texts (its type, message and traceback) and as bytes from which it can be made again:
the *original*. The awaiting PE makes an object that is an instance of the original type and of
weft.RemoteError. If the original cannot be pickled, or not be made there, the object is a weft.RemoteError
with the texts.
"""

from __future__ import annotations

import builtins
import functools
import pickle
import sys
import traceback
from collections.abc import Callable
from typing import Any

from weft import _core

# They are no errors of a program, but have a meaning for the coroutine that they enter.
_NOT_MADE_AGAIN = (StopIteration, StopAsyncIteration)
# The attributes that a weft.RemoteError has beside those of the original.
_TEXTS = ("type_name", "message", "traceback_text")


class RemoteTraceback(Exception):  # noqa: N818 - its name heads the printed text
    """The cause of an exception that has come from another chare. Its text is the traceback there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text

    def __str__(self) -> str:
        return f'\n"""\n{self._text}"""'


def travelling(error: BaseException) -> tuple[str, str, str, bytes]:
    """What the error carries to another PE.

    Returns:
        The type's name and the message, both empty if the error is no weft.RemoteError; the traceback, which
        begins with that of other PEs; the original, empty if it cannot be pickled.
    """
    remote = _texts_of(error)
    here = _traceback_of(error, chain=remote is None)
    if remote is None:
        return "", "", here, original_of(error)
    type_name, message, before = remote
    return type_name, message, before + here, original_of(error)


def original_of(error: BaseException) -> bytes:
    """What makes the error again on another PE; empty if it cannot be pickled."""
    try:
        return _pack(error)
    except Exception:  # an object in it cannot be pickled, or its class cannot be imported
        return b""


def made_again(type_name: str, message: str, traceback_text: str, original: bytes) -> _core.RemoteError:
    """The exception that an awaiting caller gets. `original` is unpickled, as the arguments of a call are."""
    try:
        error = _unpack(original)
    except Exception:  # such as a class that this PE cannot import
        error = _core.RemoteError(f"{type_name}: {message}\n{traceback_text}")
        error.__dict__["_original"] = original
    else:
        error.__cause__ = RemoteTraceback(f"{traceback_text}{type_name}: {message}\n")
    texts = (type_name, message, traceback_text)
    own = [name for name in _TEXTS if name not in error.__dict__]
    error.__dict__["_remote"] = (*texts, own)
    error.__dict__.update((name, text) for name, text in zip(_TEXTS, texts, strict=True) if name in own)
    return error


def another(error: BaseException) -> BaseException:
    """An exception equal to `error`, with the same attributes, and notes and traceback of its own."""
    kind: Any = type(error)
    base = _builtin_base(kind)
    _, arguments, *state = base.__reduce__(error)
    made: BaseException = _new(base, kind, arguments)
    made.__dict__.update(error.__dict__)
    for name, value in (state[0] or {}).items() if state else ():
        if name not in made.__dict__:  # it has a place of its own, as ImportError.name
            setattr(made, name, value)
    if isinstance(notes := made.__dict__.get("__notes__"), list):
        made.__dict__["__notes__"] = notes.copy()
    made.__cause__ = error.__cause__
    return made


def _remote_error(type_name: str, message: str, traceback_text: str, original: bytes) -> _core.RemoteError:
    """What pickles of exceptions of other chares name."""
    return made_again(type_name, message, traceback_text, original)


def _texts_of(error: BaseException) -> tuple[str, str, str] | None:
    if not isinstance(error, _core.RemoteError):
        return None
    held = error.__dict__.get("_remote")
    # A program may have changed them, or have made the object itself.
    texts = [
        error.__dict__.get(name, "") if held is None or name in held[3] else held[place]
        for place, name in enumerate(_TEXTS)
    ]
    return (str(texts[0]), str(texts[1]), str(texts[2])) if texts[0] else None


def _traceback_of(error: BaseException, *, chain: bool) -> str:
    """ "Traceback (most recent call last): ..." with causes and notes; without the exception's own line."""
    lines = traceback.format_exception(type(error), error, error.__traceback__, chain=chain)
    if sys.version_info >= (3, 11) and isinstance(error, builtins.BaseExceptionGroup):
        return "".join(lines)
    notes = getattr(error, "__notes__", ())
    own = traceback.format_exception_only(type(error), error)
    return "".join(lines[: len(lines) - len(own)]) + "".join(f"  note: {note}\n" for note in notes)


def _pack(error: BaseException) -> bytes:
    if not isinstance(error, Exception) or isinstance(error, _NOT_MADE_AGAIN):
        return b""
    if "_original" in error.__dict__:
        return bytes(error.__dict__["_original"])
    kind = vars(type(error)).get("_remote_of", type(error))
    if kind is _core.RemoteError:
        return b""
    how, arguments, state = (*_reduced(kind, error), None)[:3]
    if how in (kind, type(error)):
        # Python's own __reduce__ gives `args`. Its constructor may take others, and does not run.
        how = kind if _overrides(kind, "__reduce__") or _overrides(kind, "__reduce_ex__") else None
    if isinstance(state, dict):
        state = _state_to_send(state)
    try:
        return _core._encode((kind, how, arguments, state))
    except Exception:
        if not isinstance(state, dict):
            raise
    return _core._encode((kind, how, arguments, {name: one for name, one in state.items() if _travels(one)}))


def _overrides(kind: type[BaseException], method: str) -> bool:
    """Whether a class of the program, not of Python, defines the method."""
    return next(one for one in kind.__mro__ if method in vars(one)).__module__ != "builtins"


def _reduced(kind: type[BaseException], error: BaseException) -> tuple[Any, ...]:
    """error.__reduce_ex__() of `kind`: the object's own class may be one that this module has made."""
    if _overrides(kind, "__reduce_ex__"):
        return tuple(kind.__reduce_ex__(error, pickle.DEFAULT_PROTOCOL))
    return tuple(kind.__reduce__(error))


def _state_to_send(state: dict[str, Any]) -> dict[str, Any]:
    added = {"_remote", *state["_remote"][3]} if "_remote" in state else set()
    return {name: one for name, one in state.items() if name not in added}


def _travels(value: object) -> bool:
    try:
        _core._encode(value)
    except Exception:
        return False
    return True


def _unpack(original: bytes) -> _core.RemoteError:
    kind, how, arguments, state = _core._decode(original)
    if how is not None:
        made: Any = how(*arguments)
        if state:
            made.__setstate__(state)
        error = _empty(_class_of(made.__class__), made.args)
        error.__dict__.update(made.__dict__)
        return error
    error = _empty(_class_of(kind), arguments)
    if state:
        error.__setstate__(state)
    return error


def _empty(kind: Any, arguments: tuple[Any, ...]) -> _core.RemoteError:
    """An exception with these `args`, whose constructors in Python do not run: they may take others."""
    error = _new(_builtin_base(kind), kind, arguments)
    assert isinstance(error, _core.RemoteError)
    return error


@functools.lru_cache(maxsize=256)
def _builtin_base(kind: Any) -> Any:
    """The class of Python from which `kind` is derived. Classes made here have the modules of others."""
    return next(one for one in kind.__mro__ if one.__module__ == "builtins" and "_remote_of" not in vars(one))


def _new(base: Any, kind: Any, arguments: tuple[Any, ...]) -> Any:
    error = base.__new__(kind, *arguments)
    base.__init__(error, *arguments)
    return error


@functools.lru_cache(maxsize=256)
def _class_of(original: type[Exception]) -> type[_core.RemoteError]:
    """A class that is `original` and weft.RemoteError.

    Raises:
        TypeError: it is no exception, or its memory is laid out in another way than that of weft.RemoteError.
    """
    if not issubclass(original, Exception):
        raise TypeError(f"{original} is no exception")
    bases = (original,) if issubclass(original, _core.RemoteError) else (original, _core.RemoteError)
    if issubclass(_core.RemoteError, original):
        bases = (_core.RemoteError,)
    names = {
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
        "__doc__": original.__doc__,
        "__reduce__": _reduce,
        "__reduce_ex__": lambda self, _: _reduce(self),
        "_remote_of": original,
    }
    if original is _core.Error:
        names["code"] = original.code
    return type(original.__name__, bases, names)


def _reduce(error: _core.RemoteError) -> tuple[Callable[..., _core.RemoteError], tuple[str, str, str, bytes]]:
    texts = _texts_of(error)
    assert texts is not None
    return _remote_error, (*texts, _pack(error))
