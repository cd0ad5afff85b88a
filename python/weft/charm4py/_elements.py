"""The elements that Weft knows: for each chare class of the program one class, made here.

An element has the program's object in `obj`. For each method of the program there are three entry methods:

    m_<name>  calls it
    a_<name>  calls it and drops its result, for ``awaitable=True``
    r_<name>  returns an exception as a value, for ``ret=True`` on several chares

The prefixes keep the program's names apart from those of weft.Chare and of its proxies. Weft finds the class
on other PEs by its name in `_named`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from weft import _core
from weft._chare.when import when as weft_when
from weft.charm4py import _conditions, _reducers
from weft.charm4py._threads import blocks, run

#: By the proxy of its collection, the program's object of this PE. Groups alone.
local_objects: dict[Any, Any] = {}

#: Attributes that programs set on charm4py.readonlies; PE 0's travel with each creation.
readonlies: dict[str, Any] = {}

_made: dict[type, type[Element]] = {}
_NO_ENTRIES = frozenset({"contribute", "reduce", "allreduce", "wait", "migrated"})


class Element(_core.Chare):
    """Base of the elements."""

    chare_class: Any
    obj: Any

    def __init__(
        self, shape: str, values: dict[str, Any] | None, args: tuple[Any, ...], pes: list[int] | None = None
    ) -> None:
        if values:
            readonlies.update(values)
        self._shape = shape
        self._pes = pes
        self._next: dict[int, int] = {}
        if pes is not None and self.index not in pes:
            return  # of a group on some of the PEs
        cls: Any = type(self).chare_class
        make = getattr(cls, "_make_local", None)
        self.obj = obj = cls.__new__(cls) if make is None else make()
        obj._weft = self
        from weft.charm4py._proxies import enter_collection

        enter_collection(obj, self, shape)
        if shape in ("group", "constrained"):
            local_objects[self.proxy] = obj
        init = cls.__init__
        if shape == "main" or blocks(init):
            _core._spawn(run(obj.__init__, *args), f"{cls.__qualname__}.__init__")
        elif make is None:
            obj.__init__(*args)

    def migrated(self) -> None:
        self.obj.migrated()

    @weft_when(lambda self, text: _conditions.holds(self, text))
    def w_wait(self, text: str) -> None:
        """A call of it waits as long as `self.wait(text)` does."""

    @weft_when(lambda self, source, number: self._is_next(source, number))
    def w_ordered(self, source: int, number: int, entry: str, args: Any, kwargs: Any) -> Any:
        """A call of charm.options.ordered: in the order in which `source` has sent them."""
        self._next[source] = number + 1
        return getattr(self, entry)(*args, **kwargs)

    def w_give_result(self, whole: Any, number: int, post_of: str | None, value: Any = None) -> None:
        """Gives the result of an all-reduce to a collection or section. The caller is the first chare of a
        section: in order with its calls. `post_of` names an added reducer whose `post` is applied."""
        if post_of is not None:
            value = _reducers.added(post_of).post(value)
        whole.w_section_result(whole, number, value)

    def w_section_result(self, section: Any, number: int, value: Any = None) -> None:
        """The result of an all-reduce over a section, or with an added reducer."""
        self.obj._weft_results.pop((section, number)).set(value)

    def _is_next(self, source: int, number: int) -> bool:
        return self._next.get(source, 0) == number

    def w_sections(self, function: Callable[[Any], Any]) -> Any:
        """To which sections the object belongs."""
        return function(self.obj)


def element_class(cls: type) -> type[Element]:
    """The class of the elements of a chare class."""
    made = _made.get(cls)
    if made is None:
        made = _made[cls] = _make(cls)
    return made


def method_names(cls: type) -> list[str]:
    """The entry methods of a chare class."""
    names = []
    for name in dir(cls):
        is_special = name.startswith("__") and name.endswith("__")
        is_own = is_special or name in _NO_ENTRIES or name.startswith(("_weft", "_make_local"))
        if not is_own and inspect.isfunction(inspect.getattr_static(cls, name)):
            names.append(name)
    return names


def _make(cls: type) -> type[Element]:
    members: dict[str, Any] = {"__module__": "weft.charm4py._named", "chare_class": cls}
    members["__qualname__"] = f"{cls.__module__}.{cls.__qualname__}"
    for name in method_names(cls):
        members.update(_entry_methods(cls, name))
    if hasattr(cls, "resumeFromSync") or _uses_sync(cls):
        members["resume_from_sync"] = _resume_from_sync
    return type(cls.__name__, (Element,), members)


def _uses_sync(cls: Any) -> bool:
    functions = [getattr(cls, name) for name in method_names(cls) if name != "AtSync"]
    return any(
        "AtSync" in function.__code__.co_names
        for function in (*functions, cls.__init__)
        if hasattr(function, "__code__")
    )


def _resume_from_sync(self: Element) -> None:
    resume = getattr(self.obj, "resumeFromSync", None)
    if resume is None:
        return
    if blocks(resume):
        _core._spawn(run(resume), f"{type(self.obj).__qualname__}.resumeFromSync")
    else:
        resume()


def _entry_methods(cls: type, name: str) -> dict[str, Any]:
    function = getattr(cls, name)
    call = f"_run(self.obj.{name}{{}})" if blocks(function) else f"self.obj.{name}({{}})"
    parameters, passed, scope = _parameters(function)
    if blocks(function):
        call = call.format(f", {passed}" if passed else "")
        bodies = {
            "m": f"def m_{name}({parameters}):\n return {call}",
            "a": f"async def a_{name}({parameters}):\n await {call}",
            "r": f"async def r_{name}({parameters}):\n"
            f" try: return await {call}\n except Exception as _error: return _error",
        }
    else:
        call = call.format(passed)
        bodies = {
            "m": f"def m_{name}({parameters}):\n return {call}",
            "a": f"def a_{name}({parameters}):\n {call}",
            "r": f"def r_{name}({parameters}):\n try: return {call}\n"
            " except Exception as _error: return _error",
        }
    scope["_run"] = run
    exec(compile("\n".join(bodies.values()), f"<entry methods of {cls.__qualname__}.{name}>", "exec"), scope)
    made = {f"{kind}_{name}": scope[f"{kind}_{name}"] for kind in bodies}
    text = _conditions.condition_of(function)
    if text is not None:
        names = list(inspect.signature(function).parameters)[1:]
        condition = _conditions.as_function(text, cls.__module__, names)
        made = {entry: weft_when(condition)(method) for entry, method in made.items()}
    return made


def _parameters(function: Callable[..., Any]) -> tuple[str, str, dict[str, Any]]:
    """The parameters of a method as source text, how they are passed on, and the values of defaults."""
    texts, passed, scope = ["self"], [], {}
    star = False
    for place, one in enumerate(list(inspect.signature(function).parameters.values())[1:]):
        default = ""
        if one.default is not one.empty:
            scope[f"_default{place}"] = one.default
            default = f"=_default{place}"
        if one.kind is one.VAR_POSITIONAL:
            texts.append(f"*{one.name}")
            passed.append(f"*{one.name}")
            star = True
        elif one.kind is one.VAR_KEYWORD:
            texts.append(f"**{one.name}")
            passed.append(f"**{one.name}")
        elif one.kind is one.KEYWORD_ONLY:
            texts += ([] if star else ["*"]) + [f"{one.name}{default}"]
            passed.append(f"{one.name}={one.name}")
            star = True
        else:
            texts.append(f"{one.name}{default}")
            passed.append(one.name)
    return ", ".join(texts), ", ".join(passed), scope
