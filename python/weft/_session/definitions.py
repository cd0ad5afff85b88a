"""Classes and functions that the other PEs cannot import: they travel by value, as cloudpickle takes them.

The other PEs of a job that this process has started have not run the program. They import modules by name.
What is in ``__main__``, in a notebook or in a test module, and what is defined inside a function, has no name
by which they could. Such a definition is written into a folder of the job when a PE first names it to others,
and its name there is what travels. A PE that meets the name for the first time reads it. The folder can be
entered by this user alone, and it is removed at the end.

A definition is the object, not its text: a class that is defined again is another one. Its name is kept in
the object itself, so that copies on other PEs have the same. It refers to the object: functools.wraps and
decorators of classes copy what is in an object into another one.

Threads: the PE's.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import sys
import types
import uuid
import weakref
from collections import ChainMap
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, ClassVar

import cloudpickle

from weft import _core

# As kByValue in python/src/support/importable.cpp.
_PREFIX = "<by value>"
_NAME = "__weft_definition__"
_FILE_NAME = re.compile(r"[0-9a-f]{32}")


class _Name:
    """The name of a definition, in its attribute `_NAME`."""

    def __init__(self, text: str, owner: Any) -> None:
        self.text = text
        self._owner = weakref.ref(owner)

    def is_of(self, definition: Any) -> bool:
        return self._owner() is definition

    def __getstate__(self) -> tuple[str, Any]:
        return self.text, self._owner()

    def __setstate__(self, state: tuple[str, Any]) -> None:
        self.text, owner = state
        # Nothing has the name if its owner has gone.
        self._owner = weakref.ref(type("_Gone", (), {}) if owner is None else owner)


class Definitions:
    """Those of one job, while it is entered. The extension then asks it for keys of classes, and for pickles,
    and afterwards the one that was entered before, if there is one.

    `folder` is shared by the PEs of the job.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._published: set[str] = set()
        self._known: dict[str, Any] = {}
        self._registered: list[types.ModuleType] = []
        self._is_by_value: dict[str, bool] = {}
        # That of the other PEs, which this process may change later.
        self._path = list(sys.path)

    def __enter__(self) -> None:
        self._before: Definitions | None = _core._set_definitions(self)

    def __exit__(self, *_: object) -> None:
        _core._set_definitions(self._before)
        for module in self._registered:
            cloudpickle.unregister_pickle_by_value(module)

    def key_of(self, definition: Any) -> str | None:
        """The key under which other PEs find a class or function; None if they can import it."""
        if not self._travels_by_value(definition):
            return None
        name, _, qualname = _name_of(definition).partition(":")
        if name not in self._published:
            self._publish(name, definition)
            self._known[name] = definition
        return f"{_PREFIX}{name}:{qualname}"

    def find(self, key: str) -> Any:
        """The class or function of a key."""
        name, _, qualname = key[len(_PREFIX) :].partition(":")
        if name in self._known:
            return self._known[name]
        if _FILE_NAME.fullmatch(name) is None:
            raise LookupError("not a name of a definition")
        try:
            with open(os.path.join(self._folder, name), "rb") as file:
                definition = pickle.load(file)
        except FileNotFoundError:
            raise LookupError("it was defined in another job, and did not travel to this one") from None
        if isinstance(definition, type):
            definition.__qualname__ = qualname  # cloudpickle leaves it out
        self._published.add(name)
        self._known[name] = definition
        return definition

    def dumps(
        self,
        value: object,
        protocol: int = 5,
        buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None,
    ) -> bytes:
        """As pickle.dumps, with definitions by value."""
        file = io.BytesIO()
        _Pickler(self, file, protocol, buffer_callback).dump(value)
        return file.getvalue()

    def dumps_linked(self, value: object, buffers: list[pickle.PickleBuffer]) -> bytes:
        """As weft._codec.linked_pickle.dumps, with definitions by value."""
        file = io.BytesIO()
        _LinkedPickler(self, file, 5, buffers.append).dump(value)
        return file.getvalue()

    def _publish(self, name: str, definition: Any) -> None:
        path = os.path.join(self._folder, name)
        if not os.path.exists(path):
            try:
                pickled = self.dumps(definition)
            except Exception as error:
                raise _core.Error(f"{_advice(definition)} ({type(error).__name__}: {error})") from error
            # Another PE may read it as soon as it has its name.
            unfinished = f"{path}.{os.getpid()}"
            with open(unfinished, "xb") as file:
                file.write(pickled)
            os.rename(unfinished, path)
        self._published.add(name)

    def meet(self, definition: Any) -> None:
        """A class or function is about to be pickled: prepares what travels by value for it."""
        if not isinstance(definition, (type, types.FunctionType)) or not self._travels_by_value(definition):
            return
        _name_of(definition)
        module = sys.modules.get(definition.__module__ or "")
        if module is None or module.__name__ == "__main__" or module in self._registered:
            return
        if module.__name__ not in cloudpickle.list_registry_pickle_by_value():
            cloudpickle.register_pickle_by_value(module)
            self._registered.append(module)

    def _travels_by_value(self, definition: Any) -> bool:
        name = getattr(definition, "__module__", None)
        qualname = getattr(definition, "__qualname__", None)
        if not isinstance(name, str) or not isinstance(qualname, str) or not hasattr(definition, "__dict__"):
            return False
        if "<locals>" in qualname or "<lambda>" in qualname:
            return True
        if name not in self._is_by_value:
            self._is_by_value[name] = not _others_can_import(name, self._path)
        return self._is_by_value[name]


def _reduce_code(code: types.CodeType) -> Any:
    """As cloudpickle, which leaves out the file's name: tracebacks of other PEs show it."""
    make, values = cloudpickle.Pickler.dispatch_table[types.CodeType](code)
    return make, tuple(code.co_filename if value == "<dynamic-code>" else value for value in values)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    dispatch_table: ClassVar[ChainMap[Any, Any]] = ChainMap(
        {types.CodeType: _reduce_code}, cloudpickle.Pickler.dispatch_table
    )

    def __init__(
        self,
        definitions: Definitions,
        file: io.BytesIO,
        protocol: int,
        buffer_callback: Callable[[pickle.PickleBuffer], Any] | None,
    ) -> None:
        super().__init__(file, protocol=protocol, buffer_callback=buffer_callback)
        self._definitions = definitions

    def reducer_override(self, obj: Any) -> Any:
        self._definitions.meet(obj)
        return super().reducer_override(obj)


class _LinkedPickler(_Pickler):
    def reducer_override(self, obj: Any) -> Any:
        part = _core._pickle_part(obj)
        return part if part is not NotImplemented else super().reducer_override(obj)


def _others_can_import(name: str, path: list[str]) -> bool:
    """Whether another process, whose sys.path is `path`, finds this module under its name."""
    if name in ("__main__", "__mp_main__"):
        return False
    if name.partition(".")[0] == "weft":
        return True  # pytest rewrites the package of a plugin that is installed, as it does test modules
    module = sys.modules.get(name)
    spec: ModuleSpec | None = getattr(module, "__spec__", None)
    # Test modules and conftest.py: pytest imports and rewrites them in its own way.
    if spec is None or type(spec.loader).__name__ == "AssertionRewritingHook":
        return False
    parent, _, _ = name.rpartition(".")
    if parent and not _others_can_import(parent, path):
        return False
    of_parent = getattr(sys.modules.get(parent), "__path__", None) if parent else None
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        of_top = path if finder is PathFinder else None
        found = find(name, of_parent if parent else of_top) if find is not None else None
        if found is not None:
            return bool(found.origin == spec.origin)
    return False


def _name_of(definition: Any) -> str:
    """Of the file of its definition, and the qualified name that it has where it was defined."""
    name = vars(definition).get(_NAME)
    if not isinstance(name, _Name) or not name.is_of(definition):
        name = _Name(f"{uuid.uuid4().hex}:{definition.__qualname__}", definition)
        setattr(definition, _NAME, name)
    return name.text


def _advice(definition: Any) -> str:
    return (
        f"{definition.__qualname__} is defined where the other PEs cannot import it, so it travels by value, "
        "with the global variables that it uses, and one of them cannot; define it in a module that can be "
        "imported, or make the variable inside the function that uses it"
    )
