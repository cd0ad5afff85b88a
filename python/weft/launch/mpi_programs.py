"""`weft mpi-bin`: programs with the names that build systems and scripts look for.

They are shell scripts that run the `weft` of this Python. They lie in a folder of the user's cache: a package
does not know where it will be installed, and an `mpicc` in the environment itself would hide another MPI.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

# Python puts the current folder first among those that it imports from, where a file of any name may lie.
_START = "import sys; sys.path[:] = filter(None, sys.path); from weft.cli import main; sys.exit(main())"
# The name of each program, and the command of `weft` that it runs.
PROGRAMS = {
    "mpicc": "mpicc",
    "mpicxx": "mpicxx",
    "mpic++": "mpicxx",
    "mpiCC": "mpicxx",
    "mpiexec": "run",
    "mpirun": "run",
}


def program_text(command: str, before: str = ":") -> str:
    """A shell script that runs a command of `weft` of this Python, after the shell's command `before`."""
    return (
        f'#!/bin/sh\n{before}\nexec {shlex.quote(sys.executable)} -c {shlex.quote(_START)} {command} "$@"\n'
    )


def make_programs(environment: Mapping[str, str]) -> Path:
    """Writes the programs, unless they are there, and returns their folder.

    Raises:
        OSError: the folder cannot be written.
    """
    folder = _folder(environment)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, command in PROGRAMS.items():
        text = program_text(command)
        program = folder / name
        if program.exists() and program.read_text(encoding="utf-8") == text:
            continue
        # Another process may run it meanwhile.
        draft = folder / f".{name}.{os.getpid()}"
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(program)
    return folder


def _folder(environment: Mapping[str, str]) -> Path:
    cache = environment.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    # One for each Python, because each has a Weft of its own.
    number = hashlib.sha256(sys.executable.encode()).hexdigest()[:12]
    return Path(cache, "weft", f"mpi-bin-{number}").absolute()
