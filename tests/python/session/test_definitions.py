"""What travels by value, and what the other PEs import."""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path

import pytest

import weft
from weft._session.definitions import Definitions


def work(x):
    return x


def timed(function):
    @functools.wraps(function)
    def wrapper(x):
        return "timed", function(x)

    return wrapper


def test_a_wrapper_of_a_function_that_has_travelled_is_another_function() -> None:
    async def main():
        async with weft.Pool() as pool:
            return await pool.map(work, range(2)), await pool.map(timed(work), range(2))

    assert weft.run(main, pes=2) == ([0, 1], [("timed", 0), ("timed", 1)])


def decorated(kind):
    """A copy of the class, as decorators make that add slots."""
    members = {name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")}
    return type(kind)(kind.__name__, kind.__bases__, members)


def test_a_decorator_of_a_class_that_has_travelled_makes_another_class() -> None:
    class Plain(weft.Chare):
        def kind(self):
            return "plain"

    async def main():
        plain = await weft.Array(Plain, 2).kind.call()
        changed = decorated(Plain)
        changed.kind = lambda self: "decorated"
        return plain, await weft.Array(changed, 2).kind.call()

    assert weft.run(main, pes=2) == (["plain"] * 2, ["decorated"] * 2)


def test_definitions_inside_others_give_way_to_them(tmp_path: Path) -> None:
    def local() -> None:
        pass

    outer, inner = tmp_path / "outer", tmp_path / "inner"
    outer.mkdir()
    inner.mkdir()
    with Definitions(str(outer)):
        with Definitions(str(inner)):
            assert weft._core._importable_key(local).startswith("<by value>")
        key = weft._core._importable_key(local)
        assert key.startswith("<by value>") and weft._core._imported(key) is local
        assert len(list(outer.iterdir())) == len(list(inner.iterdir())) == 1
    with pytest.raises(weft.Error, match="is defined inside a function"):
        weft._core._importable_key(local)


class Point:
    pass


class Everywhere(weft.Chare):
    def pe(self):
        return weft.my_pe()


def test_a_class_of_a_job_of_one_pe_travels_to_the_next_job() -> None:
    async def main():
        return await weft.Group(Everywhere).pe.call()

    assert weft.run(main) == [0]
    assert weft.run(main, pes=2) == [0, 1]
    assert weft.run(main, pes=1) == [0]


def test_a_definition_that_came_back_keeps_its_name() -> None:
    class Echo(weft.Chare):
        def echo(self, value):
            return value

    async def main():
        echo = weft.Singleton(Echo, 1)
        kind = await echo.echo.call(Point)
        function = await echo.echo.call(work)
        async with weft.Pool() as pool:
            return kind is Point, await pool.map(function, range(2)), await pool.map(work, range(2))

    assert weft.run(main, pes=2) == (True, [0, 1], [0, 1])


EXCEPTIONS = """\
import weft
class Mine(Exception):
    def __init__(self, a, b):
        super().__init__(a)
        self.b = b
class A(weft.Chare):
    def fail(self): raise Mine("a", 2)
    async def pass_on(self, other): await other.fail.call()
async def main():
    chares = weft.Array(A, 3)
    for call in (chares[1].fail.call(), chares[1].pass_on.call(chares[2]), chares[0].pass_on.call(chares[1])):
        try:
            await call
        except Mine as error:
            print(type(error).__name__, error.args, error.b, isinstance(error, weft.RemoteError))
weft.run(main, pes=3)
"""


def test_exceptions_of_classes_by_value_keep_their_type(run_program) -> None:
    ended = run_program(EXCEPTIONS)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "Mine ('a',) 2 True\n" * 3


def test_a_module_of_a_folder_that_was_added_later_travels_by_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weft_added_later.py").write_text(
        "import weft\nclass Added(weft.Chare):\n    def pe(self): return weft.my_pe()\n"
    )
    try:
        with weft.session(pes=2) as session:
            monkeypatch.syspath_prepend(str(tmp_path))
            added = importlib.import_module("weft_added_later").Added
            assert session.run(lambda: weft.Array(added, 2).pe.call()) == [0, 1]
    finally:
        sys.modules.pop("weft_added_later", None)


def test_what_the_other_pes_cannot_import_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weft_needed.py").touch()

    class Needs(weft.Chare):
        def name(self):
            return module.__name__

    with weft.session(pes=2) as session:
        monkeypatch.syspath_prepend(str(tmp_path))
        module = importlib.import_module("weft_needed")
        with pytest.raises(weft.Error, match=r"it imports modules with the sys\.path that PE 0 had then"):
            session.run(lambda: weft.Array(Needs, 2).name.call())
    del sys.modules["weft_needed"]
