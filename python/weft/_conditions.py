"""What weft.when finds out about a condition from its code: which of the calls that wait can be ready.

A condition is called for each call that waits, each time that its chare may have changed. That is too often
if many calls wait. So its code is read, once:

- If the condition can hold only if a value of the chare equals one of the call, as in
  ``number == self.next``, the calls are found by that value.
- If all that the condition reads of the chare is attributes, it is not asked again until one of them changes.

Everything else is asked each time: a condition with calls, with global variables, or with code that this
module does not know, as another version of Python may have.
"""

from __future__ import annotations

import dis
import inspect
import math
import types
from collections.abc import Callable
from typing import Any, NamedTuple

_Function = Callable[..., Any]

_IGNORED = {"RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG", "TO_BOOL", "NOT_TAKEN"}
_LOADS = {
    "LOAD_FAST",
    "LOAD_FAST_CHECK",
    "LOAD_FAST_BORROW",
    "LOAD_FAST_LOAD_FAST",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
}
_CONSTANTS = {"LOAD_CONST", "LOAD_SMALL_INT"}
_COPIES = {"COPY", "DUP_TOP"}
_FALSE_JUMPS = {"POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_FALSE"}
_OLD_OPERATORS = {  # of Python 3.10
    "BINARY_ADD": "+",
    "BINARY_SUBTRACT": "-",
    "BINARY_MULTIPLY": "*",
    "BINARY_FLOOR_DIVIDE": "//",
    "BINARY_MODULO": "%",
    "BINARY_SUBSCR": "[]",
}
_OPERATORS = {*_OLD_OPERATORS.values()}
# Besides loads and binary operators: they depend on their operands alone, if these cannot change.
_PURE = {
    *_CONSTANTS,
    *_COPIES,
    *_FALSE_JUMPS,
    "BUILD_TUPLE",
    "COMPARE_OP",
    "CONTAINS_OP",
    "JUMP_FORWARD",
    "JUMP_IF_FALSE_OR_POP",
    "JUMP_IF_TRUE_OR_POP",
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


class Analysis(NamedTuple):
    """Functions that the extension calls. The first two are both there or both None.

    Attributes:
        chare_key: gets the chare: the value that must equal call_key's.
        call_key: gets what the condition gets.
        reads: gets the chare: a tuple of all that the condition reads of it; None if that is not known.
    """

    chare_key: _Function | None = None
    call_key: _Function | None = None
    reads: _Function | None = None


def analyse(condition: _Function) -> Analysis:
    """What is known of a condition. Its parameters are those that weft.when accepts."""
    if not isinstance(condition, types.FunctionType) or inspect.isgeneratorfunction(condition):
        return Analysis()
    try:
        keys = _find_keys(condition)
        reads = _find_reads(condition)
    except (IndexError, ValueError, TypeError):  # code of a form that is not known
        return Analysis()
    chare = condition.__code__.co_varnames[0]
    made = Analysis()
    if keys is not None:
        call_key = _make(_parameters(condition), keys[1])
        call_key.__defaults__ = condition.__defaults__
        call_key.__kwdefaults__ = condition.__kwdefaults__
        made = Analysis(_make(chare, keys[0]), call_key)
    if reads is None:
        return made
    return made._replace(reads=_make(chare, f"({''.join(f'{one}, ' for one in reads)})"))


def _names(condition: types.FunctionType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of its positional parameters, and of those that are given by name."""
    code = condition.__code__
    positional = code.co_argcount
    return code.co_varnames[:positional], code.co_varnames[positional : positional + code.co_kwonlyargcount]


def _parameters(condition: types.FunctionType) -> str:
    positional, named = _names(condition)
    return ", ".join([*positional, *(["*", *named] if named else [])])


def _make(parameters: str, text: str) -> types.FunctionType:
    """The function of these parameters that returns the value of `text`, which is of a condition's code."""
    made: types.FunctionType = eval(f"lambda {parameters}: {text}", {"__builtins__": {}})
    return made


# --- Equality of a value of the chare and one of the call


class _Value(NamedTuple):
    """An expression: its text, the parameters that it reads, and the two sides if it is an equality."""

    text: str
    reads: frozenset[str] = frozenset()
    sides: tuple[_Value, _Value] | None = None


def _steps(condition: types.FunctionType) -> list[dis.Instruction]:
    return [step for step in dis.get_instructions(condition) if step.opname not in _IGNORED]


def _find_keys(condition: types.FunctionType) -> tuple[str, str] | None:
    """The expressions of the chare and of the call that are equal whenever the condition holds.

    The code is followed as long as it is ``a and b and c``: each of them must hold.
    """
    positional, named = _names(condition)
    chare = positional[0]
    parameters = {*positional, *named}
    steps = _steps(condition)
    stack: list[_Value] = []
    for step in steps:
        name = step.opname
        if name in _LOADS:
            loaded = _loaded(step)
            if not parameters.issuperset(loaded):
                return None
            stack.extend(_Value(one, frozenset({one})) for one in loaded)
        elif name in _CONSTANTS:
            text = _constant(step.argval)
            if text is None:
                return None
            stack.append(_Value(text))
        elif name == "LOAD_ATTR" and not _is_method(step):
            value = stack.pop()
            stack.append(_Value(f"{value.text}.{step.argval}", value.reads))
        elif (operator := _operator(step)) is not None:
            right, left = stack.pop(), stack.pop()
            text = f"({left.text} {operator} {right.text})"
            if operator == "[]":
                text = f"{left.text}[{right.text}]"
            stack.append(_Value(text, left.reads | right.reads))
        elif name == "COMPARE_OP":
            right, left = stack.pop(), stack.pop()
            text = f"({left.text} {step.argval} {right.text})"
            sides = (left, right) if step.argval == "==" else None
            stack.append(_Value(text, left.reads | right.reads, sides))
        elif name in _COPIES and step.arg in (None, 0, 1):
            stack.append(stack[-1])
        elif name == "POP_TOP":
            stack.pop()
        elif name in _FALSE_JUMPS or name == "JUMP_IF_FALSE_OR_POP":
            value = stack.pop()
            # The condition must be false then: what was tested is returned.
            if not _returns(steps, step.argval) or (name in _FALSE_JUMPS and stack[-1] is not value):
                return None
            if (keys := _keys_of(value, chare)) is not None:
                return keys
        elif name == "RETURN_VALUE":
            return _keys_of(stack[-1], chare)
        else:
            return None
    return None


def _keys_of(value: _Value, chare: str) -> tuple[str, str] | None:
    if value.sides is None:
        return None
    for of_chare, of_call in (value.sides, value.sides[::-1]):
        is_of_chare = of_chare.reads == {chare} and of_chare.text != chare
        if is_of_chare and of_call.reads and chare not in of_call.reads:
            return of_chare.text, of_call.text
    return None


def _returns(steps: list[dis.Instruction], offset: int) -> bool:
    """Whether the step at that offset, or the first behind it, returns what is on the stack."""
    return next((step.opname for step in steps if step.offset >= offset), None) == "RETURN_VALUE"


# --- What a condition reads of its chare


def _find_reads(condition: types.FunctionType) -> list[str] | None:
    """As ``self.a``, ``self.b.c``; None if the condition may depend on more than that and its arguments."""
    chare = _names(condition)[0][0]
    steps = _steps(condition)
    found: list[str] = []
    at = 0
    while at < len(steps):
        step = steps[at]
        at += 1
        if step.opname == "IS_OP":
            if steps[at - 2].opname != "LOAD_CONST" or steps[at - 2].argval is not None:
                return None  # equal values may be different objects
        elif step.opname not in _LOADS:
            if step.opname not in _PURE and _operator(step) is None:
                return None
        elif chare in _loaded(step)[:-1]:
            return None  # the chare itself goes somewhere
        elif _loaded(step)[-1] == chare:
            attribute = chare
            while steps[at].opname == "LOAD_ATTR" and not _is_method(steps[at]):
                attribute += f".{steps[at].argval}"
                at += 1
            if attribute == chare:
                return None
            found.append(attribute)
    return found


# --- Instructions, which differ between versions of Python


def _loaded(step: dis.Instruction) -> tuple[str, ...]:
    return step.argval if isinstance(step.argval, tuple) else (step.argval,)


def _is_method(step: dis.Instruction) -> bool:
    return "NULL" in step.argrepr


def _operator(step: dis.Instruction) -> str | None:
    """The sign of a binary operator that changes neither operand; None for another step."""
    if step.opname == "BINARY_OP":
        return step.argrepr if step.argrepr in _OPERATORS else None
    return _OLD_OPERATORS.get(step.opname)


def _constant(value: object) -> str | None:
    if value is None or type(value) in (bool, int, str, bytes):
        return f"({value!r})"
    if type(value) is float and math.isfinite(value):
        return f"({value!r})"
    return None
