"""The command line that starts a PE of the user's program, and checks of the options."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Sequence

MAX_PES = 4096
_MOST_SECONDS = 1e9

# `weft run` sets these for each PE.
OWN_VARIABLES = frozenset(
    f"WEFT_{name}"
    for name in (
        "NUM_PES",
        "PE",
        "PROGRAM",
        "BOOTSTRAP",
        "JOB_NAME",
        "LAUNCHER_PID",
        "MPI_PARENT",
        "OUTER_PMIX",
        "TIME_LIMIT",
    )
)


class UsageError(Exception):
    """The command line is wrong. The message says how to correct it. Exit code 2."""


def parse_num_pes(text: str) -> int:
    """The value of -n.

    Raises:
        UsageError: not a number from 1 to MAX_PES.
    """
    try:
        num_pes = int(text)
    except ValueError:
        raise UsageError(
            f"-n takes the number of PEs, a whole number from 1 to {MAX_PES}, not '{text}'"
        ) from None
    if num_pes < 1:
        raise UsageError(f"-n {num_pes}: a job has at least one PE; give a number from 1 to {MAX_PES}")
    if num_pes > MAX_PES:
        raise UsageError(
            f"-n {num_pes}: `weft run` starts at most {MAX_PES} PEs; for more use the resource manager's "
            "launcher (srun, mpiexec)"
        )
    return num_pes


def check_choice(variable: str, value: str | None, choices: Sequence[str]) -> None:
    """Refuses a value that every PE would refuse.

    Raises:
        UsageError: the environment variable has another value than these.
    """
    if value is not None and value not in choices:
        raise UsageError(f"{variable}='{value}': choose {' or '.join(choices)}, or unset it")


def check_gpus(text: str) -> None:
    """The value of --gpus, before any PE is started.

    Raises:
        UsageError: neither auto, none nor a list of numbers.
    """
    if text not in ("auto", "none") and re.fullmatch(r"[0-9]{1,4}(,[0-9]{1,4})*", text) is None:
        raise UsageError(f"--gpus takes auto, none or a list of GPUs such as 0,2, not '{text}'")


def parse_timeout(text: str | None) -> float | None:
    """The value of --timeout, in seconds.

    Raises:
        UsageError: not a positive number.
    """
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < _MOST_SECONDS:
        raise UsageError(f"--timeout takes a number of seconds above 0, such as 60 or 0.5, not '{text}'")
    return seconds


def parse_variables(texts: Sequence[str]) -> dict[str, str]:
    """The values of --env.

    Raises:
        UsageError: one is not NAME=VALUE, or its variable belongs to the launcher.
    """
    variables = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(
                f"--env takes NAME=VALUE, not '{text}'; the PEs have the variables of this environment"
            )
        if name in OWN_VARIABLES:
            raise UsageError(f"--env {name}: `weft run` sets {name} for each PE; it is not to be changed")
        variables[name] = value
    return variables


def argv_of_pes(num_pes: str, program: str, arguments: Sequence[str]) -> list[list[str]]:
    """The command line of each PE of `-n N program arguments`, or of `... : -n N program arguments : ...`.

    A ':' among the arguments that no -n follows is one of the program's own.

    Raises:
        UsageError: a number, or a program, is wrong.
    """
    sections = [["-n", num_pes, program]]
    words = list(arguments)
    for i, word in enumerate(words):
        if word == ":" and words[i + 1 : i + 2] in (["-n"], ["-np"]):
            sections.append([])
        else:
            sections[-1].append(word)
    argvs: list[list[str]] = []
    for section in sections:
        if len(section) < 3:
            raise UsageError(
                "behind ':' say how many PEs and which program: "
                "weft run -n N program [arguments] : -n N program [arguments]"
            )
        num_pes_of_program = parse_num_pes(section[1])
        argvs += [program_argv(section[2], section[3:])] * num_pes_of_program
    parse_num_pes(str(len(argvs)))
    return argvs


def program_argv(program: str, arguments: Sequence[str]) -> list[str]:
    """The command line of a PE: a .py file, or a module behind -m, runs with this Python, all else directly.

    Raises:
        UsageError: there is no such program, or it cannot be run.
    """
    if program == "-m":
        if not arguments:
            raise UsageError("-m takes the name of a Python module, for example -m package.module")
        return [sys.executable, "-m", *arguments]
    if program.endswith(".py"):
        return [sys.executable, _readable_file(program), *arguments]
    return [_executable(program), *arguments]


def _readable_file(path: str) -> str:
    _check_is_file(path)
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path}: not readable by this user; check its permissions (chmod u+r {path})")
    return path


def _executable(program: str) -> str:
    if "/" not in program:
        found = shutil.which(program)
        if found is not None:
            return found
        if not os.path.lexists(program):
            raise UsageError(
                f"{program}: no such program here or on PATH; give its path, for example build/{program}"
            )
        program = f"./{program}"
    _check_is_file(program)
    if not os.access(program, os.X_OK):
        raise UsageError(
            f"{program}: not executable; `chmod +x {program}` if it is a program, or give a .py file"
        )
    return program


def _check_is_file(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; give the path of a program or of a .py file") from None
    if stat.S_ISDIR(mode):
        raise UsageError(f"{path}: is a directory; give the path of a program or of a .py file in it")
