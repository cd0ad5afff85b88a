"""Names for the frames of stacks that C++ programs write."""

from __future__ import annotations

import re
import subprocess

# What backtrace_symbols_fd() writes of a function without a dynamic symbol.
_FRAME = re.compile(r"^(?P<file>/[^\n()]+)\(\+(?P<offset>0x[0-9a-f]+)\)", re.MULTILINE)
# A function of include/weft/chare/entry.h that the runtime calls for an entry method.
_ENTRY_METHOD = re.compile(r"\bEntryMethod<.*?, &(?P<name>[^<>]+)>::")
_LIMIT_S = 10


def with_names(stack: str) -> str:
    """The stack with the name of each function that addr2line knows. Without addr2line, the stack itself."""
    offsets: dict[str, list[str]] = {}
    for frame in _FRAME.finditer(stack):
        offsets.setdefault(frame["file"], []).append(frame["offset"])
    names = {(file, offset): name for file, some in offsets.items() for offset, name in _names(file, some)}
    return _FRAME.sub(lambda frame: f"{names.get((frame['file'], frame['offset']), '')}{frame[0]}", stack)


def _names(file: str, offsets: list[str]) -> list[tuple[str, str]]:
    # A frame has the address behind its call, which may be that of the next function.
    addresses = [hex(int(offset, 16) - 1) for offset in offsets]
    try:
        done = subprocess.run(
            ["addr2line", "-C", "-f", "-s", "-e", file, *addresses],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    functions = done.stdout.splitlines()[::2]  # each is followed by its line
    return [(offset, f"{name} in ") for offset, name in zip(offsets, functions, strict=False) if name != "??"]


def entry_method(stack: str) -> str:
    """The entry method of C++ that a stack with names is in; empty if it is in none."""
    found = _ENTRY_METHOD.search(stack)
    return found["name"] if found else ""
