"""The prompt of charm4py.interactive.

Definitions of classes and functions, and imports, run on all PEs: chares and tasks need them there.
"""

from __future__ import annotations

import ast
import sys
from code import InteractiveInterpreter
from typing import Any

from weft.charm4py._chare import Chare
from weft.charm4py._charm import charm
from weft.charm4py._futures import Future

_EVERYWHERE = (ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom)


class Console(Chare):
    """Reads statements from standard input, and runs them in a method that may block."""

    def __init__(self, args: list[str]) -> None:
        names = vars(sys.modules["__main__"])
        names.update({"self": self, "future": _kept_future})
        interpreter = InteractiveInterpreter(names)
        source = ""
        while True:
            try:
                line = input("... " if source else ">>> ")
            except EOFError:
                break
            source = f"{source}\n{line}" if source else line
            if not self._run(interpreter, source):
                source = ""
        charm.exit()

    def _run(self, interpreter: InteractiveInterpreter, source: str) -> bool:
        """Returns whether the statement is not complete."""
        try:
            code: Any = interpreter.compile(source, "<console>")
        except (OverflowError, SyntaxError, ValueError):
            interpreter.showsyntaxerror("<console>")
            return False
        if code is None:
            return True
        statements = ast.parse(source).body
        if any(isinstance(statement, _EVERYWHERE) for statement in statements):
            try:
                charm.thisProxy.rexec(source, awaitable=True).get()
            except Exception:
                interpreter.showtraceback()
        else:
            interpreter.runcode(code)
        return False


def _kept_future() -> Future:
    """A future, also in the variable _f."""
    made = Future()
    vars(sys.modules["__main__"])["_f"] = made
    return made
