"""Programs that use another MPI than Weft's: each of their processes is rank 0 of 1, without an error.

A binary that names the other library is known before it starts. Python packages and libraries of libraries
load it later, and scripts start it as a child. So the launcher looks at what PE 0 and its children have
mapped, until a PE has joined the job.

If the files of the command line name mpi4py and do not name Weft, the job ends with an error. Any other
program may use Weft as well, so the launcher says a sentence only.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

# In C, Fortran and C++; those of Open MPI, MPICH and Cray. Weft's is libmpi_abi.
_NAME = r"libmpi(?:ch|_mpifh|_usempi\w*|_cxx|_cray|_gnu_[0-9]+)?\.so[.0-9]*"
_MAPPED = re.compile(rf"^\S+ r.*? (/\S*/{_NAME})$", re.MULTILINE)
_FIRST_LOOK_S = 0.05
_GROWTH = 1.25
_LONGEST_PAUSE_S = 10.0
_MOST_PROCESSES = 16

_INSTALL_MPI4PY = (
    "Build mpi4py for Weft with `weft mpi4py-wheel`, and install that wheel with "
    "`pip install --force-reinstall --no-deps`"
)

# Numbers in the format of ELF files.
_LOADED, _DYNAMIC = 1, 2
_NEEDED, _NAMES, _NAMES_SIZE = 1, 5, 10
_LARGEST_TABLE = 1 << 24


class Finding(NamedTuple):
    """What to say of another MPI, and whether the job ends."""

    sentence: str
    is_error: bool


class OtherMpiWatch:
    """Looks for another MPI in a job of `num_pes` PEs; `argv` is the command line of the first one."""

    def __init__(self, argv: Sequence[str], num_pes: int) -> None:
        self._argv = argv
        self._program = argv[0]
        self._num_pes = num_pes
        self._pause_s = _FIRST_LOOK_S
        #: When to look next, as time.monotonic() says it; None: not any more.
        self.deadline: float | None = time.monotonic() + self._pause_s if num_pes > 1 else None

    def before_start(self) -> str | None:
        """What to say of the program itself."""
        if self.deadline is None or (library := named_library(self._program)) is None:
            return None
        self.stop()
        return (
            f"{self._program} names {library}, another MPI: if it uses that, each of the {self._num_pes} "
            "processes runs alone, as rank 0 of 1. Compile it with `weft mpicc` or `weft mpicxx`"
        )

    def look(self, pid: int, now: float) -> Finding | None:
        """What is to be said of the process, if anything is. Sets the next deadline."""
        self._pause_s = min(self._pause_s * _GROWTH, _LONGEST_PAUSE_S)
        self.deadline = now + self._pause_s
        library = next((found for found in map(mapped_library, _maps(pid)) if found is not None), None)
        if library is None:
            return None
        self.stop()
        if is_of_mpi4py(self._argv):
            return Finding(
                f"mpi4py has loaded {library}, another MPI: each of the {self._num_pes} processes would be "
                f"rank 0 of 1. {_INSTALL_MPI4PY}",
                is_error=True,
            )
        return Finding(
            f"the program has loaded {library}, another MPI: if it uses that, each of the {self._num_pes} "
            "processes runs alone, as rank 0 of 1. Compile it with `weft mpicc` or `weft mpicxx`. "
            f"{_INSTALL_MPI4PY}",
            is_error=False,
        )

    def stop(self) -> None:
        """Nothing is looked for any more: a PE has joined the job, or all is said."""
        self.deadline = None


def is_of_mpi4py(argv: Sequence[str]) -> bool:
    """Whether the Python files of a command line, or its -m, name mpi4py and do not name Weft."""
    try:
        text = b"\n".join(Path(word).read_bytes() for word in argv if word.endswith(".py"))
    except OSError:
        return False
    return ("mpi4py" in argv or b"mpi4py" in text) and b"weft" not in text


def mapped_library(maps: str) -> str | None:
    """The path of another MPI's library in a text as /proc/PID/maps."""
    found = _MAPPED.search(maps)
    return found[1] if found else None


def _maps(pid: int) -> Iterator[str]:
    """The text of /proc/PID/maps of the process and of those that it has started."""
    pids = [pid]
    for one in pids:  # which grows
        try:
            with open(f"/proc/{one}/maps", encoding="utf-8", errors="replace") as file:
                yield file.read()
            with open(f"/proc/{one}/task/{one}/children", encoding="ascii") as file:
                pids += map(int, file.read().split()[: _MOST_PROCESSES - len(pids)])
        except OSError:  # it has ended, or the system does not tell of children
            continue


def named_library(program: str) -> str | None:
    """The library of another MPI that a binary is linked with."""
    try:
        with open(program, "rb") as file:
            names = list(_needed(file))
    except (OSError, struct.error):
        return None
    if any(name.startswith("libmpi_abi.so") for name in names):
        return None
    return next((name for name in names if re.fullmatch(_NAME, name)), None)


def _needed(file: BinaryIO) -> Iterator[str]:
    """The shared libraries that an ELF file of 64 bits names."""
    header = file.read(64)
    if header[:6] != b"\x7fELF\x02\x01":
        return
    (table,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    if size != 56:
        return
    # Type, flags, offset in the file, address, another one, size in the file, size in memory, alignment.
    segments = list(struct.iter_unpack("<IIQQQQQQ", _read(file, table, size * count)))
    entries = [
        entry
        for segment in segments
        if segment[0] == _DYNAMIC
        for entry in struct.iter_unpack("<qQ", _read(file, segment[2], segment[5] // 16 * 16))
    ]
    values: dict[int, int] = {entry[0]: entry[1] for entry in entries}
    names = b""
    for segment in segments:
        if segment[0] == _LOADED and segment[3] <= values.get(_NAMES, 0) < segment[3] + segment[5]:
            offset = segment[2] + values[_NAMES] - segment[3]
            names = _read(file, offset, min(values.get(_NAMES_SIZE, 0), _LARGEST_TABLE))
    for tag, value in entries:
        if tag == _NEEDED:
            yield names[value:].split(b"\0", 1)[0].decode(errors="replace")


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    if size > _LARGEST_TABLE or offset > 1 << 62:
        raise struct.error("a table that no program has")
    file.seek(offset)
    return file.read(size)
