"""Conditions of charm4py, texts such as ``"self.iteration == number"``, as functions for weft.when.

The chare that Weft knows is the element, whose attribute `obj` is the program's object: ``self`` in a text
means ``element.obj``. weft.when reads the code of the function, and finds waiting calls by value.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

_MARK = "__charm4py_when__"
_ELEMENT = "_element"


def when(condition: str) -> Callable[[_F], _F]:
    """Decorator of an entry method: a call waits in its chare until the condition holds.

    Args:
        condition: an expression of ``self``, the arguments of the method, and globals of its module.
    """
    if not isinstance(condition, str):
        raise TypeError(f'when takes a text, as in @when("self.number == number"), not {condition!r}')

    def mark(method: _F) -> _F:
        setattr(method, _MARK, condition)
        return method

    return mark


def condition_of(method: object) -> str | None:
    """The text of `when`; None without one."""
    return getattr(method, _MARK, None)


class _Names(ast.NodeTransformer):
    def __init__(self) -> None:
        self.met: set[str] = set()

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id != "self":
            self.met.add(node.id)
            return node
        element = ast.Name(_ELEMENT, ast.Load())
        return ast.copy_location(ast.Attribute(element, "obj", ast.Load()), node)


def as_function(text: str, module: str, parameters: Iterable[str]) -> Callable[..., Any]:
    """A function of the element and of those parameters that the text names."""
    names = _Names()
    try:
        body = names.visit(ast.parse(text.strip(), mode="eval")).body
    except SyntaxError as error:
        raise SyntaxError(f"the condition {text!r} is no expression of Python: {error}") from None
    used = [name for name in parameters if name in names.met]
    arguments = ast.arguments([], [ast.arg(name) for name in (_ELEMENT, *used)], None, [], [], None, [])
    whole = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, body)))
    code = compile(whole, f"<condition {text!r}>", "eval")
    made: Callable[..., Any] = eval(code, vars(sys.modules[module]))
    return made


@functools.lru_cache(maxsize=1024)  # texts may have values in them
def _tested(text: str, module: str) -> Callable[[Any], Any]:
    return as_function(text, module, ())


def holds(element: Any, text: str) -> bool:
    """Whether a condition without arguments, of ``self.wait(text)``, holds now."""
    return bool(_tested(text, type(element.obj).__module__)(element))
