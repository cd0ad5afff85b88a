"""Proxies say what they call, and a wrong call raises TypeError where it is made; checks itself."""

import abc
import functools
import inspect
import pydoc

from refusing import refused

import weft


def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


NAMES = [f"p{i}" for i in range(70)]


class Cell(weft.Chare):
    size = 3

    def __init__(self, start=0, *, step=1):
        self.start = start

    def put(self, value, unit="m") -> str:
        """Stores a value.

        Any unit will do.
        """
        return f"{value} {unit}"

    def only_named(self, *, key, other=2):
        return key, other

    def mixed(self, first, /, second=2, *rest, third=3, **others):
        return first, second, rest, third, others

    @staticmethod
    def fixed(value):
        return value

    @classmethod
    def of_class(cls, value=1):
        return cls.__name__, value

    @traced
    def wrapped(self, value):
        return value

    many = eval(f"lambda self, {', '.join(NAMES)}: {NAMES[-1]}")

    def without_chare():
        """Wrong: it has no parameter for the chare."""

    @weft.when(lambda self, value: value > 0)
    async def guarded(self, value):
        """Waits for a positive value."""
        return value

    @weft.post_entry("store")
    def post_store(self, array):
        pass

    def store(self, array):
        pass

    def _private(self):
        pass

    def contribute_to(self, target):
        self.contribute(1, weft.Reducer.sum, target)


class Wall(weft.Chare):
    def put(self, value):
        return value

    def paint(self):
        pass


class Documented(weft.Chare):
    @abc.abstractmethod
    def put(self, value):
        """From the base class."""


class Undocumented(Documented):
    def put(self, value):
        return value


def public(proxy):
    return [name for name in dir(proxy) if not name.startswith("_")]


METHODS = ["contribute_to", "fixed", "guarded", "many", "mixed", "of_class", "only_named"]
METHODS += ["put", "store", "without_chare", "wrapped"]


def check_names(cells, walls):
    own = ["aggregated", "created", "destroy", "done_inserting", "insert", "section", "shape", "split"]
    assert public(cells) == sorted(METHODS + own)
    assert public(cells[0]) == sorted(
        [*METHODS, "aggregated", "collection", "index", "remove", "with_priority"]
    )
    assert public(cells[0:2]) == sorted([*METHODS, "collection", "indices", "section", "split"])
    assert public(weft.combine(cells, walls)) == ["parts", "put"]


def check_descriptions(cells):
    for proxy in (cells, cells[0], cells[0:2]):
        put = proxy.put
        assert put.__doc__ == "Stores a value.\n\nAny unit will do."
        assert (put.__name__, put.__qualname__) == ("put", "Cell.put")
        assert str(inspect.signature(put)) == "(value, unit='m') -> str"
        assert str(inspect.signature(put.bind(1))) == "(unit='m') -> str"
        text = pydoc.plain(pydoc.render_doc(put))
        assert "put(value, unit='m') -> str\n" in text and "Any unit will do." in text, text
    assert str(inspect.signature(cells.fixed)) == "(value)" == str(inspect.signature(cells.wrapped))
    assert str(inspect.signature(cells.of_class)) == "(value=1)"
    assert cells.guarded.__doc__ == "Waits for a positive value." and cells.fixed.__doc__ is None
    assert weft.Group(Undocumented).put.__doc__ == "From the base class."
    assert weft.EntryMethod.__doc__.startswith("``proxy.method``: an entry method")
    assert weft.Array[Cell].__origin__ is weft.Array and weft.EntryMethod[..., int].__args__[1] is int
    assert callable(inspect.signature)  # weft.EntryMethod itself has no signature of a method:
    assert getattr(weft.EntryMethod, "__signature__", None) is None


def expected_error(function, *args, **kwargs):
    """What Python says when the method itself is called so."""
    try:
        function(object(), *args, **kwargs)
    except TypeError as error:
        return str(error)
    raise AssertionError(f"{function} can be called so")


def check_wrong_calls(cells, walls):
    wrong = [
        ("put", (), {}),
        ("put", (1, 2, 3), {}),
        ("put", (1,), {"c": 2}),
        ("put", (1,), {"value": 2}),
        ("only_named", (), {}),
        ("only_named", (1,), {}),
        ("only_named", (), {"other": 1}),
        ("mixed", (), {"first": 1}),
        ("mixed", (), {}),
        ("guarded", (), {}),
        ("mixed", (1, 2), {"second": 3}),
        ("put", (), {"unit": "m"}),
        ("only_named", (), {"key": 1, "wrong": 2}),
        ("many", (), dict.fromkeys(NAMES[1:], 1)),
    ]
    for name, args, kwargs in wrong:
        text = expected_error(getattr(Cell, name), *args, **kwargs)
        for proxy in (cells, cells[0], cells[0:2]):
            method = getattr(proxy, name)
            for way in (method, method.call, method.send):
                refused(text, way, *args, error=TypeError, **kwargs)
    refused("takes 0 positional arguments but 1 was given", cells[0].without_chare, error=TypeError)
    refused("but 4 were given", cells[0].put.bind(1, 2), 3, error=TypeError)
    combined = weft.combine(cells, walls)
    refused("Wall.put() takes 2 positional arguments but 3 were given", combined.put, 1, "m", error=TypeError)
    refused("Cell.put() missing", combined.put, error=TypeError)
    refused("takes from 1 to 2 positional arguments", weft.Group, Cell, (1, 2), error=TypeError)
    sparse = weft.Array(Cell, sparse=True)
    refused("takes from 1 to 2 positional arguments", sparse.insert, 1, 2, 3, error=TypeError)


async def check_right_calls(cells):
    cell = cells[0]
    assert await cell.put.call(1) == "1 m" and await cell.put.call(unit="s", value=2) == "2 s"
    assert await cell.only_named.call(key=1) == (1, 2)
    mixed = await cell.mixed.call(1, 2, 3, 4, third=5, first=6)
    assert mixed == (1, 2, (3, 4), 5, {"first": 6})
    assert await cell.many.call(**{name: name for name in NAMES}) == NAMES[-1]
    assert await cell.put.call(1, **{"".join(["un", "it"]): "s"}) == "1 s"  # a name that is another object
    assert await cell.mixed.bind(1).call() == (1, 2, (), 3, {})
    assert await cell.fixed.call(7) == 7 and await cell.of_class.call() == ("Cell", 1)
    assert await cell.wrapped.call(8) == 8
    future = weft.Future()
    cells.contribute_to(future)
    assert await future == 2
    # What a decorator hides is only found where the method runs.
    try:
        await cell.wrapped.call()
    except weft.RemoteError as error:
        assert error.type_name == "TypeError"
    else:
        raise AssertionError("a call without its argument has run")


def check_attributes(cells, walls):
    for proxy in (cells, cells[0], cells[0:2], weft.combine(cells, walls)):
        for name, reason in (
            ("_private", "Cell._private is no entry method, because names that begin with an underscore"),
            ("size", "Cell.size is an attribute and no method"),
            ("post_store", "Cell.post_store is a post entry method"),
            ("migrate", "migrate belongs to weft.Chare"),
            (
                "nothing",
                "the chare class Cell has no entry method 'nothing'; its entry methods: contribute_to,",
            ),
            (
                "_nothing",
                f"'{type(proxy).__module__}.{type(proxy).__name__}' object has no attribute '_nothing'",
            ),
        ):
            refused(reason, getattr, proxy, name, error=AttributeError)
        refused("the attribute 'put' of a weft.", setattr, proxy, "put", 1, error=AttributeError)
        refused("the attribute 'put' of a weft.", delattr, proxy, "put", error=AttributeError)


async def main():
    cells, walls = weft.Array(Cell, 2), weft.Array(Wall, 2)
    check_names(cells, walls)
    check_descriptions(cells)
    check_wrong_calls(cells, walls)
    check_attributes(cells, walls)
    await check_right_calls(cells)
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
