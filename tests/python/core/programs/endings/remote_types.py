"""Exceptions of other chares: their types, attributes, notes and causes. Prints "all checked"."""

import builtins
import copy
import pickle
import sys
import threading
import traceback

import weft


class TwoArgumentsError(Exception):
    def __init__(self, first, second):
        super().__init__(first)
        self.second = second


class OwnNamesError(ValueError):
    """Has attributes with the names of weft.RemoteError's."""

    def __init__(self):
        super().__init__("own")
        self.message = "my message"
        self.code = 7
        self.lock = threading.Lock()  # does not pickle


class UnpicklableError(Exception):
    def __reduce__(self):
        raise TypeError("not this one")


class ReducedError(Exception):
    def __init__(self, *, name):
        super().__init__(f"about {name}")
        self.name = name

    def __reduce__(self):
        return _make_reduced, (self.name,)


class CodeError(Exception):
    """With the usual __reduce__ of an exception whose constructor takes other arguments than `args`."""

    def __init__(self, number, what):
        super().__init__(f"{number}: {what}")
        self.number = number
        self.what = what

    def __reduce__(self):
        return type(self), (self.number, self.what), {"place": "here"}


class ProtocolError(Exception):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def __reduce_ex__(self, protocol):
        return ProtocolError, (self.number,)


class SlottedError(Exception):
    __slots__ = ("place",)


class OwnRemoteError(weft.RemoteError):
    pass


class NotMadeAgainError(Exception):
    def __setstate__(self, state):
        raise TypeError("not here")


def _make_reduced(name):
    return ReducedError(name=name)


def with_note(error, note):
    error.__notes__ = [note]
    return error


def local_error():
    class LocalError(Exception):
        pass

    return LocalError("of a function")


def not_made_again():
    error = NotMadeAgainError("unlucky")
    error.state = 1
    return error


def group():
    return builtins.ExceptionGroup("several", [ValueError("one"), KeyError("two")])


MADE = {
    "key": lambda: KeyError("k"),
    "two": lambda: TwoArgumentsError("x", 42),
    "own": OwnNamesError,
    "os": lambda: FileNotFoundError(2, "No such file", "there"),
    "unicode": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    "import": lambda: ImportError("no", name="module"),
    "note": lambda: with_note(ValueError("v"), "note me"),
    "unpicklable": UnpicklableError,
    "argument": lambda: ValueError(threading.Lock()),
    "reduced": lambda: ReducedError(name="it"),
    "code": lambda: CodeError(3, "broken"),
    "protocol": lambda: ProtocolError(4),
    "slotted": lambda: SlottedError("s"),
    "plain": lambda: Exception("plain"),
    "weft": lambda: weft.Error("of weft"),
    "remote": lambda: OwnRemoteError("remote"),
    "stop": lambda: StopIteration(3),
    "base": lambda: GeneratorExit("base"),
    "local": local_error,
    "not made again": not_made_again,
    "group": group,
}


class Raiser(weft.Chare):
    def fail(self, which):
        raise MADE[which]()

    async def ask(self, which, hops):
        if hops == 0:
            await self.proxy[self.index - 1].fail.call(which)
        try:
            await self.proxy[self.index - 1].ask.call(which, hops - 1)
        except Exception as error:
            if which == "note":
                error.__notes__.append(f"at {self.index}")
            raise

    def chained(self):
        try:
            return 1 / 0
        except ZeroDivisionError as error:
            raise RuntimeError("outer") from error


async def error_of(awaitable):
    try:
        await awaitable
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def check_remote(error, name, message):
    assert isinstance(error, weft.RemoteError), error
    assert error.__dict__["type_name"] == name, error.type_name
    assert "Raiser[" in error.traceback_text and "remote_types.py" in error.traceback_text
    if "message" in error.__dict__ and message is not None:
        assert error.message == message, error.message


async def check(error, which):
    made = MADE[which]()
    check_remote(error, _name(made), None)
    assert isinstance(error, type(made)) and error.args == made.args and str(error) == str(made), error
    assert type(error).__name__ == type(made).__name__
    told = "".join(traceback.format_exception(error))
    assert told.count("in fail\n") == 1 and "direct cause" in told, told
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error) and again.args == error.args
        assert again.traceback_text == error.traceback_text and str(again.__cause__) == str(error.__cause__)


def _name(error):
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


async def typed(ask):
    for which in ("key", "two", "own", "os", "unicode", "import", "note", "slotted", "plain", "weft"):
        if which == "own":
            continue
        await check(await error_of(ask(which)), which)
    error = await error_of(ask("two"))
    assert error.second == 42
    error = await error_of(ask("own"))
    assert isinstance(error, OwnNamesError) and not hasattr(error, "lock")
    assert (error.message, error.code, error.type_name) == ("my message", 7, "__main__.OwnNamesError")
    again = pickle.loads(pickle.dumps(error))
    assert (again.message, again.code, again.args) == ("my message", 7, ("own",))
    error = await error_of(ask("os"))
    assert (error.errno, error.filename) == (2, "there") and isinstance(error, OSError)
    error = await error_of(ask("unicode"))
    assert (error.object, error.start, error.reason) == (b"\xff", 0, "bad")
    assert (await error_of(ask("import"))).name == "module"
    assert (await error_of(ask("note"))).__notes__[0] == "note me"
    error = await error_of(ask("weft"))
    assert isinstance(error, weft.Error) and error.code == "invalid argument"
    error = await error_of(ask("reduced"))
    assert isinstance(error, ReducedError) and error.name == "it" and str(error) == "about it"
    error = await error_of(ask("code"))
    await check(error, "code")
    assert (error.number, error.what, error.place) == (3, "broken", "here")
    error = await error_of(ask("protocol"))
    await check(error, "protocol")
    assert error.number == 4
    assert isinstance(await error_of(ask("remote")), OwnRemoteError)
    if sys.version_info >= (3, 11):
        error = await error_of(ask("group"))
        assert isinstance(error, builtins.ExceptionGroup) and isinstance(error.exceptions[1], KeyError), error


async def untyped(ask):
    """What cannot be made again is a weft.RemoteError whose text is all that is known."""
    for which in ("unpicklable", "argument", "stop", "base", "local", "not made again"):
        error = await error_of(ask(which))
        made = MADE[which]()
        assert type(error) is weft.RemoteError and error.type_name == _name(made), error
        assert error.type_name in str(error) and "in fail" in str(error) and error.__cause__ is None
        assert type(pickle.loads(pickle.dumps(error))) is weft.RemoteError


async def read_again(future):
    """What further readers of a failed future get is copied."""
    for _ in range(3):
        await error_of(future)
    return await future


async def several_read(future):
    """Each has an exception of its own."""
    errors = await weft.gather(*(error_of(future) for _ in range(4)))
    for i, error in enumerate(errors):
        error.place = i
        error.__notes__ = [*error.__notes__, f"by {i}"]
    errors.append(await error_of(future))
    assert len({id(error) for error in errors}) == 5
    for i, error in enumerate(errors[:4]):
        assert (error.place, error.__notes__) == (i, ["note me", f"by {i}"]), error.__notes__
    assert not hasattr(errors[4], "place") and errors[4].__notes__ == ["note me"]
    errors[4].__notes__.append("in place")
    assert (await error_of(future)).__notes__ == ["note me"]
    assert len({id(error.__traceback__) for error in errors}) == 5


async def main():
    raisers = weft.Array(Raiser, 4)
    for ask in (
        lambda which: raisers[3].fail.call(which),
        lambda which: raisers[3].ask.call(which, 2),
        lambda which: raisers.fail.call(which),
        lambda which: read_again(raisers[3].fail.call(which)),
    ):
        await typed(ask)
        await untyped(ask)
    error = await error_of(raisers[3].ask.call("note", 2))
    assert error.__notes__ == ["note me", "at 2", "at 3"], error.__notes__
    error = await error_of(raisers[1].chained.call())
    assert isinstance(error, RuntimeError) and "ZeroDivisionError" in str(error.__cause__)

    await several_read(raisers[3].fail.call("note"))

    future = weft.Future()
    future.set_error(KeyError("set"))
    assert isinstance(await error_of(future), KeyError)
    assert type(await error_of(raisers[3].fail.call("key"))) is type(
        await error_of(raisers[0].fail.call("key"))
    )
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
