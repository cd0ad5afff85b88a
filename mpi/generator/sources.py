"""Writes the sources of the library that follow from the table: small forms over large ones, and stubs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from table import Function, Parameter, Topic

DEFINITION = re.compile(r'^(?:extern "C" )?(?:int|double|MPI_\w+) (MPI_\w+)\(', re.MULTILINE)
# The function has no plain translation from one form to the other.
BY_HAND = ("USER_FUNCTION", "CONVERSION_FUNCTION")
# Parameters that say which error handler applies.
SCOPES = ("MPI_Comm", "MPI_Win", "MPI_File", "MPI_Session")
# Functions of mpi/src/communication/lengths.h and their arguments.
LENGTHS = {
    "peers": "comm",
    "peers_if_sent": "sendbuf, comm",
    "peers_at_root": "root, comm",
    "members": "comm",
    "sources": "comm",
    "destinations": "comm",
}
# The prefix of functions for the program weft-mpi-host, mpi/src/ranks/host_interface.h.
HOST_PREFIX = "weft_mpi_host_"
# The prefixes of functions beyond the standard, include/weft/mpi/weft_mpi.h and weft_mpi_stream.h.
OWN_PREFIXES = ("Weft_", "MPIX_")

HEAD = """\
// Generated from mpi/functions by mpi/generator/generate.py.
"""


@dataclass(frozen=True)
class States:
    """How each function of the table comes about."""

    by_hand: frozenset[str]  # names that a file of mpi/src defines
    wrapped: frozenset[str]  # small forms that call their large form

    def is_implemented(self, name: str) -> bool:
        return name in self.by_hand or name in self.wrapped


def defined_names(folder: Path) -> frozenset[str]:
    """The functions that the hand-written sources define."""
    files = sorted(folder.rglob("*.cpp"))
    return frozenset(name for file in files for name in DEFINITION.findall(file.read_text(encoding="utf-8")))


def needs_hand(function: Function) -> bool:
    return any(parameter.large_only or parameter.word in BY_HAND for parameter in function.parameters)


def states_of(topics: list[Topic], folder: Path) -> States:
    by_hand = defined_names(folder)
    functions = [function for topic in topics for function in topic.functions]
    unknown = by_hand - {name for function in functions for name in function.names}
    if unknown:
        raise SystemExit(f"{folder} defines {', '.join(sorted(unknown))}, which the table does not have")
    wrapped = set()
    for function in functions:
        if not function.has_large_form or function.name in by_hand or f"{function.name}_c" not in by_hand:
            continue
        if needs_hand(function):
            raise SystemExit(f"{folder}: write {function.name} by hand beside {function.name}_c")
        wrapped.add(function.name)
    return States(by_hand, frozenset(wrapped))


def passed(parameter: Parameter) -> tuple[list[str], str, list[str]]:
    """How a small form passes a parameter: lines before the call, the argument, lines after a success."""
    name = parameter.name
    if not parameter.varies or not (parameter.stars or parameter.array):
        return [], name, []
    large = parameter.type_name(True)
    if parameter.array:
        length = parameter.length
        if length in LENGTHS:
            length = f"{length}({LENGTHS[length]})"
        return (
            [f"const Widened<{large}, {parameter.type_name(False)}> large_{name}({name}, {length});"],
            f"large_{name}.data()",
            [],
        )
    # A pointer that is no address becomes null, which the large form refuses.
    start = f"is_address({name}) ? *{name} : 0" if name == "position" else "0"
    return (
        [f"{large} large_{name} = {start};"],
        f"is_address({name}) ? &large_{name} : nullptr",
        [f"if (is_address({name})) *{name} = narrowed<{parameter.type_name(False)}>(large_{name});"],
    )


def wrapper(function: Function) -> list[str]:
    before: list[str] = []
    arguments: list[str] = []
    after: list[str] = []
    for parameter in function.parameters:
        lines, argument, lines_after = passed(parameter)
        before += lines
        arguments.append(argument)
        after += lines_after
    call = f"{function.name}_c({', '.join(arguments)})"
    head = f"{function.prototype(False)} {{"
    has_arrays = any("Widened" in line for line in before)
    if not before:
        return [head, f"  return {call};", "}", ""]
    if has_arrays:
        body = [*before, f"return {call};"]
        lines = [
            f"  return without_exceptions(__func__, {scope(function)}, [&] {{",
            *(f"    {line}" for line in body),
            "  });",
        ]
        return [head, *lines, "}", ""]
    body = [
        *before,
        f"const int code = {call};",
        "if (code != MPI_SUCCESS) return code;",
        *after,
        "return code;",
    ]
    return [head, *(f"  {line}" for line in body), "}", ""]


def scope_parameter(function: Function) -> Parameter | None:
    for parameter in function.parameters:
        if parameter.word in SCOPES and not parameter.stars and not parameter.array:
            return parameter
    return None


def scope(function: Function) -> str:
    """The argument of guarded() that says which error handler applies."""
    parameter = scope_parameter(function)
    if parameter is not None:
        return parameter.name
    return "MPI_FILE_NULL" if function.topic == "files" else "kNoObject"


def stub(function: Function, large: bool) -> list[str]:
    used = scope_parameter(function) if function.result == "int" else None
    declared = [
        parameter.declare(large) if parameter == used else parameter.declare_unnamed(large)
        for parameter in function.parameters_of(large)
    ]
    name = f"{function.name}{'_c' if large else ''}"
    head = f"{function.result} {name}({', '.join(declared)}) {{"
    if function.result != "int":
        body = ["report_missing(__func__);", "return {};"]
    else:
        body = [f"return not_implemented(__func__, {scope(function)});"]
    return [head, *(f"  {line}" for line in body), "}", ""]


def wrappers_source(topics: list[Topic], states: States) -> str:
    lines = [
        HEAD,
        '#include "weft/mpi/mpi.h"\n',
        '#include "entry/entry.h"',
        '#include "communication/lengths.h"',
        '#include "models/mpi/objects/addresses.h"',
        '#include "entry/widened.h"\n',
    ]
    lines += ["using namespace weft::mpi;\n"]
    for topic in topics:
        for function in topic.functions:
            if function.name in states.wrapped:
                lines += wrapper(function)
    return "\n".join(lines)


def stubs_source(topics: list[Topic], states: States) -> str:
    lines = [
        HEAD,
        '#include "weft/mpi/mpi.h"\n',
        '#include "entry/entry.h"\n',
        "using namespace weft::mpi;\n",
    ]
    for topic in topics:
        for function in topic.functions:
            for large, name in enumerate(function.names):
                if not states.is_implemented(name):
                    lines += stub(function, bool(large))
    return "\n".join(lines)


def all_names(topics: list[Topic]) -> list[str]:
    return sorted(name for topic in topics for function in topic.functions for name in function.names)


def version_script(topics: list[Topic]) -> str:
    """For the linker: exports the functions of the standard, of Weft's headers and of host_interface.h."""
    names = all_names(topics)
    exported = "".join(f"    {prefix}{name};\n" for prefix in ("", "P") for name in names)
    exported += "".join(f"    {prefix}*;\n" for prefix in (*OWN_PREFIXES, HOST_PREFIX))
    return f"{{\n  global:\n{exported}  local: *;\n}};\n"


def profiling_source(topics: list[Topic]) -> str:
    """PMPI_X for each MPI_X: a jump. The linker binds it to the MPI_X of the library itself."""
    lines = [HEAD, '#include "weft/mpi/mpi.h"\n']
    for topic in topics:
        for function in topic.functions:
            for large, name in enumerate(function.names):
                # The only function with "..." ignores what comes after its first parameter.
                passed_on = [p.name for p in function.parameters_of(bool(large)) if p.name != "..."]
                head = function.prototype(bool(large), "P")
                lines += [f"{head} {{", f"  return {name}({', '.join(passed_on)});", "}", ""]
    return "\n".join(lines)
