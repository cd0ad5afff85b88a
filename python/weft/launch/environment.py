"""What `weft run` sets in the environment of every PE: defaults, and which launcher it has around itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from weft._ucx_hooks import GRACE, NO_THREADS
from weft.launch.binding import thread_settings
from weft.launch.leftovers import SHARED_MEMORY, is_segment_folder, queue_settings
from weft.launch.losses.recovery import INCARNATION_VARIABLE
from weft.launch.time_limit import VARIABLE as TIME_LIMIT_VARIABLE

#: Where the definitions are that travel by value, of a job whose PEs a program has started.
SESSION_FOLDER = "WEFT_SESSION_FOLDER"
_OUTER_PMIX = "WEFT_OUTER_PMIX"
HANG_REPORT = "WEFT_HANG_REPORT"
#: What all PEs of a job of several hosts have in common, and no other job.
JOB_NAME = "WEFT_JOB_NAME"
# If all PEs are idle for so long, and nothing can go on, the program hangs. Large messages end the idleness
# of a PE; one that a device carries alone for this time has more than 100 GB.
HANG_REPORT_S = "10"


def host_environment(
    environment: Mapping[str, str], num_pes: int, segment_folder: str | None, socket_path: str
) -> dict[str, str]:
    """That of the PEs of one host, of which there are `num_pes`, started by this process.

    `segment_folder`: where they make their shared memory, if there is room for it. `socket_path`: where they
    find this process.
    """
    environment = dict(environment)
    if is_segment_folder(environment.get("UCX_POSIX_DIR")):
        # That of a `weft run` around this one, which may have ended.
        del environment["UCX_POSIX_DIR"]
    if segment_folder is not None:
        environment.setdefault("UCX_POSIX_DIR", segment_folder)
    folder = environment.get("UCX_POSIX_DIR", SHARED_MEMORY)
    environment |= queue_settings(folder, num_pes, environment)
    return {
        **thread_settings(num_pes, environment),
        **environment,
        "WEFT_BOOTSTRAP": socket_path,
        "WEFT_LAUNCHER_PID": str(os.getpid()),
    }


# A file, because a command line is limited. marshal is a part of the interpreter: no module is found before
# sys.path is right.
_START = """\
import marshal, sys
with open({file!r}, "rb") as file:
    sys.path[:], sys.argv[:] = marshal.load(file)
from {module} import main
main{arguments}
"""


def start_command(file: str | int, module: str, *arguments: int) -> list[str]:
    """The command of a process that calls ``main(*arguments)`` of a module, with PE 0's sys.path and argv.

    `file`, a path or an inherited descriptor, has both: a notebook or a test run may have changed them. The
    options of the interpreter are those of this one, as multiprocessing passes them on.
    """
    options: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    start = _START.format(file=file, module=module, arguments=arguments)
    return [sys.executable, *options, "-c", start]


def pe_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The user's environment with the defaults of a job; the same for all PEs."""
    inherited = dict(environment)
    # PEs do not inherit the connection.
    inherited.pop("PMI_FD", None)
    # The name and the program of a job around this one are not those of this job.
    inherited.pop(JOB_NAME, None)
    inherited.pop("WEFT_PROGRAM", None)
    inherited.pop(TIME_LIMIT_VARIABLE, None)
    inherited.pop(INCARNATION_VARIABLE, None)
    # The launcher around this one, so that a PE knows one that it starts from it.
    inherited.pop(_OUTER_PMIX, None)
    if "PMIX_NAMESPACE" in inherited:
        inherited[_OUTER_PMIX] = f"{inherited['PMIX_NAMESPACE']}:{inherited.get('PMIX_RANK', '')}"
    return {
        # Equal strings have equal hashes on all PEs, for example where a hash picks an element of an array.
        "PYTHONHASHSEED": str(1 + int.from_bytes(os.urandom(4), "little") % 0xFFFFFFFF),
        # A program that has just been started has no other threads when UCX is loaded.
        GRACE: NO_THREADS,
        HANG_REPORT: HANG_REPORT_S,
        **inherited,
    }
