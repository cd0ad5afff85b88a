"""What weft.when finds out about a condition from its code: which of the calls that wait can be ready.

A condition is called for each call that waits, each time that its chare may have changed. That is too often
if many calls wait. So its code is read, once:

- If the condition begins with an equality of an attribute of the chare and an argument, as in
  ``number == self.next and ...``, the calls are found by that value.
- If it depends on attributes of the chare and on its arguments alone, it is not asked again until one of the
  attributes changes.

The extension does so only while the values are ones that cannot change: Python's own numbers, strings and
tuples of them (is_plain() in python/src/chare/classes/condition.cpp). Everything else is asked each time:
conditions with calls, with global variables, or with code that this module does not know, as another version
of Python may have.
"""

from __future__ import annotations

import dis
import inspect
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_Getter = Callable[[object], object]

_IGNORED = {"RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG", "TO_BOOL", "NOT_TAKEN"}
_LOAD = "LOAD_FAST"
_LOADS = {
    _LOAD,
    "LOAD_FAST_CHECK",
    "LOAD_FAST_BORROW",
    "LOAD_FAST_LOAD_FAST",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
}
_COPIES = {"COPY", "DUP_TOP"}
_FALSE_JUMPS = {"POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_FALSE"}
# Besides loads and BINARY_OP: they depend on their operands alone, if these are numbers, strings and tuples.
_PURE = {
    *_COPIES,
    *_FALSE_JUMPS,
    "BINARY_ADD",
    "BINARY_AND",
    "BINARY_FLOOR_DIVIDE",
    "BINARY_MODULO",
    "BINARY_MULTIPLY",
    "BINARY_OR",
    "BINARY_SUBSCR",
    "BINARY_SUBTRACT",
    "BINARY_TRUE_DIVIDE",
    "BUILD_TUPLE",
    "COMPARE_OP",
    "CONTAINS_OP",
    "IS_OP",
    "JUMP_FORWARD",
    "JUMP_IF_FALSE_OR_POP",
    "JUMP_IF_TRUE_OR_POP",
    "LOAD_CONST",
    "LOAD_SMALL_INT",
    "POP_JUMP_FORWARD_IF_NONE",
    "POP_JUMP_FORWARD_IF_NOT_NONE",
    "POP_JUMP_FORWARD_IF_TRUE",
    "POP_JUMP_IF_NONE",
    "POP_JUMP_IF_NOT_NONE",
    "POP_JUMP_IF_TRUE",
    "POP_TOP",
    "RETURN_CONST",
    "RETURN_VALUE",
    "ROT_THREE",
    "ROT_TWO",
    "SWAP",
    "UNARY_NEGATIVE",
    "UNARY_NOT",
}
_PURE_OPERATORS = {"+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "[]"}  # of BINARY_OP
_PLAIN_DEFAULTS = (bool, int, float, str, bytes, types.NoneType)


class Analysis(NamedTuple):
    """What the extension gets. The first two are both there or both None.

    Attributes:
        chare_key: the attribute of the chare that the argument must equal.
        call_key: the name of that argument.
        reads: the attributes of the chare that the condition reads; None if that is not known.
    """

    chare_key: _Getter | None = None
    call_key: str | None = None
    reads: tuple[_Getter, ...] | None = None


def analyse(condition: Callable[..., object]) -> Analysis:
    """What is known of a condition. Its parameters are those that weft.when accepts."""
    if not isinstance(condition, types.FunctionType) or inspect.isgeneratorfunction(condition):
        return Analysis()
    if condition.__code__.co_argcount == 0:  # a wrapper, whose signature is another function's
        return Analysis()
    steps = list(_steps(condition))
    chare = condition.__code__.co_varnames[0]
    key = _find_key(steps, chare)
    reads = _find_reads(steps, chare) if _has_plain_defaults(condition) else None
    return Analysis(
        None if key is None else operator.attrgetter(key[0]),
        None if key is None else key[1],
        None if reads is None else tuple(map(operator.attrgetter, reads)),
    )


def _has_plain_defaults(condition: types.FunctionType) -> bool:
    defaults = [*(condition.__defaults__ or ()), *(condition.__kwdefaults__ or {}).values()]
    return all(type(default) in _PLAIN_DEFAULTS for default in defaults)


class _Step(NamedTuple):
    """An instruction; one that loads two variables is two steps."""

    name: str
    value: Any
    text: str
    offset: int


def _steps(condition: types.FunctionType) -> Iterator[_Step]:
    for one in dis.get_instructions(condition):
        if one.opname in _LOADS:
            for variable in one.argval if isinstance(one.argval, tuple) else (one.argval,):
                yield _Step(_LOAD, variable, "", one.offset)
        elif one.opname not in _IGNORED:
            yield _Step(one.opname, one.argval, one.argrepr, one.offset)


def _operand(steps: list[_Step], at: int) -> tuple[str, int]:
    """The variable that a step loads, with its attributes, as ``self.a.b``; and the step behind them."""
    path = str(steps[at].value)
    at += 1
    while at < len(steps) and steps[at].name == "LOAD_ATTR" and "NULL" not in steps[at].text:  # no method
        path += f".{steps[at].value}"
        at += 1
    return path, at


def _find_key(steps: list[_Step], chare: str) -> tuple[str, str] | None:
    """The attributes of the chare and the argument with whose equality the condition begins.

    The condition is that equality, or has ``and`` behind it: if they differ, nothing else is looked at.
    """
    at = 0
    operands: list[str] = []
    for _ in range(2):
        if steps[at].name != _LOAD:
            return None
        operand, at = _operand(steps, at)
        operands.append(operand)
    if steps[at].name != "COMPARE_OP" or steps[at].value != "==" or not _ends_if_false(steps, at + 1):
        return None
    for of_chare, of_call in (operands, operands[::-1]):
        if of_chare.startswith(f"{chare}.") and "." not in of_call and of_call != chare:
            return of_chare.removeprefix(f"{chare}."), of_call
    return None


def _ends_if_false(steps: list[_Step], at: int) -> bool:
    """Whether the condition returns what is on the stack there if it is false."""
    if steps[at].name in _COPIES:
        at += 1
        if steps[at].name not in _FALSE_JUMPS:
            return False
    elif steps[at].name != "JUMP_IF_FALSE_OR_POP":
        return steps[at].name == "RETURN_VALUE"
    target = steps[at].value
    return next((step.name for step in steps if step.offset >= target), "") == "RETURN_VALUE"


def _find_reads(steps: list[_Step], chare: str) -> list[str] | None:
    """All that the condition reads of the chare; None if it may depend on more than that and arguments."""
    found: list[str] = []
    at = 0
    while at < len(steps):
        step = steps[at]
        if step.name == _LOAD and step.value == chare:
            path, at = _operand(steps, at)
            if path == chare:  # the chare itself goes somewhere
                return None
            found.append(path.removeprefix(f"{chare}."))
            continue
        at += 1
        is_pure_operator = step.name == "BINARY_OP" and step.text in _PURE_OPERATORS
        if step.name != _LOAD and step.name not in _PURE and not is_pure_operator:
            return None
    return found
