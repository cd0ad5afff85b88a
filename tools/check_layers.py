#!/usr/bin/env python3
"""Checks the layer law: walks the includes and the links of the C++ layers and fails on an upward arrow.

    base <- memory <- machine <- runtime <- rma, collective <- queued <- models (chare <- channel, mpi, pgas)
    models <- job <- python, mpi_abi <- mpi_host
    base <- balance, checkpoint <- models

Usage: tools/check_layers.py [ROOT]. Prints one line per violation, `file:line: what; what to do`, and exits
with 1 if there was one. Tests may include anything; ARCHITECTURE.md says why each rule is there.

The lower layers throw nothing: they return a Status. The Python extension keeps to the stable ABI
(python/src/README.md), and imports nothing in initialisers of static variables.

Inside a layer includes form no cycle either, neither among its units, a unit being a header with its source,
nor among its folders, so both can be read and tested from the bottom up. No folder is so wide that a reader
does not find a file in it: see WIDEST.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

# A layer may use those before it. Layers that share a rank do not use one another, with one exception.
RANKS = {
    "base": 0,
    "balance": 1,  # pure decisions: base alone is below it
    "checkpoint": 1,  # files: base alone is below it
    "memory": 1,
    "machine": 2,
    "runtime": 3,
    "rma": 4,  # one-sided memory, on which models stand
    "collective": 4,  # collectives, on which models stand
    "queued": 5,  # transfers that streams order, on which models stand
    "chare": 6,
    "channel": 6,
    "mpi": 6,
    "pgas": 6,
    "job": 7,
    "umbrella": 8,  # include/weft/weft.h
    "python": 9,
    "mpi_abi": 9,  # the entry points of libmpi_abi, mpi/src
    "mpi_host": 10,  # the program weft-mpi-host, mpi/host
    "device": 11,  # include/weft/device: for kernels of programs. Nothing of Weft includes it
}
# A layer that uses these alone.
ONLY: dict[str, tuple[str, ...]] = {
    "mpi_host": ("base", "mpi_abi"),  # a program beside the library, which calls host_interface.h
    "device": (),  # kernels are compiled by other compilers, with the folder alone
}
SAME_RANK_ALLOWED = {("channel", "chare")}  # an endpoint is a chare

# Layers whose units or folders still have cycles. Take a layer out when its cycles are gone.
UNIT_CYCLES_EXEMPT: frozenset[str] = frozenset()
FOLDER_CYCLES_EXEMPT: frozenset[str] = frozenset()

# Layers that return a Status and never throw, but for these files: they turn one into an
# exception, or functions of the program call them.
NEVER_THROW = ("base", "memory", "machine", "balance", "checkpoint")
THROWING_FILES = frozenset({"src/base/error.cpp", "src/base/pup.cpp"})

# How many files a folder below these has at most.
WIDEST = {"include": 25, "src": 25, "mpi": 25, "python": 25, "tests": 40}

CHECKED_FOLDERS = (
    "include",
    "src",
    "python/src",
    "mpi/src",
    "mpi/host",
    "examples",
    "miniapps",
    "benchmarks",
)
# Programs that use what an installed Weft offers.
USERS = ("examples/", "miniapps/")
HEADER_SUFFIXES = (".h", ".hpp", ".cuh")
CPP_SUFFIXES = {".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh"}

INCLUDE = re.compile(r'^\s*#\s*(?:include|include_next|import)\b\s*(?:([<"])([^>"]+)[>"]|(\S.*))')
LINE_COMMENT = re.compile(r"//[^\n]*")
THROW = re.compile(r"\bthrow\b(?P<corrupt>\s[^;]*\bkCorrupt\b)?")
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
UCX_HEADER = re.compile(r"^(ucp|uct|ucs|ucm)/")
CUDA_HEADER = re.compile(r"^(cuda|nvrtc|nvml|cudart|cublas|nccl|cooperative_groups|cub/|thrust/)")
PYTHON_HEADER = re.compile(r"^(Python\.h|nanobind/|pybind11/|numpy/)")
CONCRETE_MACHINE = re.compile(r"^machine/(ucx|loopback)/")
CONCRETE_KIND = re.compile(r"^memory/kinds/\w+/")


@dataclass(frozen=True)
class Violation:
    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Include:
    file: str  # the file with the #include line, relative to the root
    line: int
    name: str  # what it names, as written
    target: str | None  # the file of this tree that it names, relative to the root, if it is one


def layer_of(path: str) -> str | None:
    """The layer that a file of the tree belongs to; None for programs, benchmarks and foreign headers."""
    parts = path.split("/")
    if path == "include/weft/weft.h":
        return "umbrella"
    if parts[:2] == ["python", "src"]:
        return "python"
    if parts[:2] == ["mpi", "src"]:
        return "mpi_abi"
    if parts[:2] == ["mpi", "host"]:
        return "mpi_host"
    if parts[:2] in (["include", "weft"], ["src", "models"]) and len(parts) > 3:
        return parts[2] if parts[2] in RANKS else None
    if parts[0] == "src" and len(parts) > 2:
        return parts[1] if parts[1] in RANKS else None
    return None


def unknown_layer(file: str) -> Violation | None:
    """A file of the library that no rule would hold for."""
    if file.startswith(("include/", "src/")) and layer_of(file) is None:
        message = f"{posixpath.dirname(file)} is no layer; move the file, or give the layer its rank here"
        return Violation(file, 1, message)
    return None


def may_use(user: str, used: str) -> bool:
    if user == used or (user, used) in SAME_RANK_ALLOWED:
        return True
    if user in ONLY:
        return used in ONLY[user]
    return RANKS[used] < RANKS[user]


def resolve(root: Path, file: str, name: str) -> str | None:
    """The tree's file that an include names: relative to an include folder or to the including file."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), name))
    own = [f"{folder}/src/{name}" for folder in ("python", "mpi") if file.startswith(f"{folder}/")]
    for candidate in (*own, f"include/{name}", f"src/{name}", beside):
        if (root / candidate).is_file():
            return candidate
    first, slash, _ = name.partition("/")
    if not slash:
        return None  # <memory> is a header of the standard library
    if name.startswith("weft/"):
        return f"include/{name}"
    if first in RANKS or first == "models":
        return f"src/{name}"
    return None


def without_block_comments(root: Path, file: str) -> str:
    """The text of the file, with all of its lines."""
    text = (root / file).read_text(encoding="utf-8", errors="replace")
    return BLOCK_COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), text)


def includes_of(root: Path, file: str) -> Iterator[Include]:
    for number, line in enumerate(without_block_comments(root, file).splitlines(), start=1):
        match = INCLUDE.match(line)
        if match:
            name = match.group(2) or match.group(3)
            target = resolve(root, file, name) if match.group(2) else None
            yield Include(file, number, name, target)


def foreign_problem(include: Include) -> str | None:
    """Headers from outside that belong to one folder."""
    file, name = include.file, include.name
    if UCX_HEADER.match(name) and not file.startswith(("src/machine/ucx/", "benchmarks/raw_ucx")):
        return f"<{name}> outside src/machine/ucx/; use the interface in machine/machine.h, or extend it"
    own_kernels = file.startswith("miniapps/") and file.endswith((".cu", ".cuh"))
    if CUDA_HEADER.match(name) and not (file.startswith("src/memory/kinds/cuda/") or own_kernels):
        return (
            f"<{name}> outside src/memory/kinds/cuda/; use the interface in memory/kinds/kind.h, or extend it"
        )
    if PYTHON_HEADER.match(name) and not file.startswith("python/"):
        return f"<{name}> outside python/; give the layer a callback and put the Python half there"
    return None


def concrete_problem(include: Include) -> str | None:
    """Concrete machines and kinds are named by their own folder and by the factory alone."""
    file = include.file
    inside = (include.target or "").removeprefix("src/")
    machine = CONCRETE_MACHINE.match(inside)
    if machine:
        allowed = (f"src/machine/{machine.group(1)}/", "src/machine/factory/factory.cpp", "benchmarks/")
        if not file.startswith(allowed):
            return (
                f'"{include.name}" names a concrete machine; '
                "include machine/machine.h and get the machine from machine/factory/factory.h"
            )
    if CONCRETE_KIND.match(inside) and not file.startswith("src/memory/kinds/"):
        return (
            f'"{include.name}" names a concrete memory kind; '
            "include memory/kinds/kind.h and ask the KindBackend"
        )
    return None


def arrow_problem(include: Include) -> str | None:
    """Arrows between layers point down only, and from public headers to public headers only."""
    if include.target is None:
        return None
    user, used = layer_of(include.file), layer_of(include.target)
    if user and used and not may_use(user, used):
        if RANKS[user] == RANKS[used]:
            return (
                f'"{include.name}": {user} includes {used}, which is beside it; '
                "put what both need into a layer below, or let them meet in one above"
            )
        return (
            f'"{include.name}": {user} includes {used}, which is above it; '
            f"move the shared part down, or let {used} hand {user} a callback"
        )
    if include.file.startswith("include/") and include.target.startswith("src/"):
        return (
            f'"{include.name}" is private, and this header installed; move it to include/, or forward-declare'
        )
    if include.file.startswith(USERS) and include.target.startswith("src/"):
        return (
            f'"{include.name}" is private; examples and mini-apps use what a user has, '
            "the headers in include/weft/"
        )
    return None


def check_include(include: Include) -> Iterator[Violation]:
    if include.target is None and not re.match(r"[\w./+-]+$", include.name):
        message = f"the include {include.name!r} is computed and cannot be checked; name the file"
        yield Violation(include.file, include.line, message)
        return
    for problem in (foreign_problem(include), concrete_problem(include), arrow_problem(include)):
        if problem:
            yield Violation(include.file, include.line, problem)


def unit_of(files: frozenset[str], file: str) -> str:
    """The unit that a file belongs to: a source goes with the header of its stem, also a public one."""
    stem, suffix = posixpath.splitext(file)
    if suffix in HEADER_SUFFIXES or any(stem + header in files for header in HEADER_SUFFIXES):
        return stem
    public = f"include/weft/{layer_of(file)}/{posixpath.basename(stem)}"
    return public if any(public + header in files for header in HEADER_SUFFIXES) else stem


def cycle_from(uses: dict[str, dict[str, Include]], start: str) -> list[Include] | None:
    """The includes of a shortest way from a unit back to itself."""
    ways: dict[str, list[Include]] = {start: []}
    reached = [start]
    for unit in reached:
        for used, include in uses.get(unit, {}).items():
            if used == start:
                return [*ways[unit], include]
            if used not in ways:
                ways[used] = [*ways[unit], include]
                reached.append(used)
    return None


def check_cycles(files: list[str], includes: list[Include]) -> Iterator[Violation]:
    """Cycles inside of a layer, among its units and among its folders."""
    known = frozenset(files)
    inside = [
        include
        for include in includes
        if include.target in known and layer_of(include.file) == layer_of(include.target) is not None
    ]
    for what, node_of, exempt in (
        ("includes", lambda file: unit_of(known, file), UNIT_CYCLES_EXEMPT),
        ("folders", posixpath.dirname, FOLDER_CYCLES_EXEMPT),
    ):
        yield from cycles_among(what, node_of, [one for one in inside if layer_of(one.file) not in exempt])


def cycles_among(what: str, node_of: Callable[[str], str], includes: list[Include]) -> Iterator[Violation]:
    """Each node is reported in one cycle at most."""
    uses: dict[str, dict[str, Include]] = {}
    for include in includes:
        user, used = node_of(include.file), node_of(str(include.target))
        if user != used:
            uses.setdefault(user, {}).setdefault(used, include)
    reported: set[str] = set()
    for node in sorted(uses):
        cycle = None if node in reported else cycle_from(uses, node)
        if cycle is None:
            continue
        way = [node_of(include.file) for include in cycle]
        reported.update(way)
        message = (
            f"a cycle of {what}: {' -> '.join([*way, node])}; "
            "move what both sides need below them, or hand one an interface"
        )
        yield Violation(cycle[0].file, cycle[0].line, message)


def check_throws(root: Path, file: str) -> Iterator[Violation]:
    """Exceptions where a Status belongs, and refusals that do not go through the one function for them."""
    layer = layer_of(file)
    if layer is None or file in THROWING_FILES or file.startswith(("python/", "mpi/")):
        return
    for match in THROW.finditer(text := LINE_COMMENT.sub("", without_block_comments(root, file))):
        line = text.count("\n", 0, match.start()) + 1
        if layer in NEVER_THROW:
            message = f"{layer} throws; return a base::Status, which the API's edge gives to base::check()"
            yield Violation(file, line, message)
        elif match.group("corrupt"):
            yield Violation(file, line, "kCorrupt is thrown; call base::refuse_claim() (base/refuse_claim.h)")


def without_full_api(text: str) -> str:
    """The text, with all of its lines, without what is compiled only where Py_LIMITED_API is not defined."""
    lines: list[str] = []
    parts: list[tuple[bool, bool]] = []  # of each open conditional: whether this part is left out, the next
    for line in text.splitlines():
        directive = re.match(r"\s*#\s*(if\w*|el\w+|endif)\b(.*)", line)
        word, condition = directive.groups() if directive else ("", "")
        if word.startswith("if"):
            is_ours, without = "Py_LIMITED_API" in condition, word == "ifndef"
            parts.append((is_ours and without, is_ours and not without))
        elif word.startswith("el"):
            parts[-1] = (parts[-1][1], parts[-1][1])
        elif word == "endif":
            parts.pop()
        lines.append("" if any(part for part, _ in parts) else line)
    return "\n".join(lines)


MEMBER_OF_CPYTHON = re.compile(r"->\s*((?:tp|ob)_\w+)")
IMPORT_IN_STATIC = re.compile(r"\bstatic\b[^;={]*=\s*import_\w+\(")


def check_extension(root: Path, file: str) -> Iterator[Violation]:
    """What the stable ABI does not have, and imports during which another thread would wait with the GIL."""
    if not file.startswith("python/src/"):
        return
    text = LINE_COMMENT.sub("", without_full_api(without_block_comments(root, file)))
    for match in MEMBER_OF_CPYTHON.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        message = f"{match.group(1)} is not in the stable ABI; use type_name_of() or attribute() (support.h)"
        yield Violation(file, line, message)
    for match in IMPORT_IN_STATIC.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        message = "an import in the initialiser of a static variable; use Imported (support/support.h)"
        yield Violation(file, line, message)


def check_widths(root: Path) -> Iterator[Violation]:
    """Folders with more files than a reader surveys."""
    for top, most in WIDEST.items():
        widths = Counter(
            path.parent.relative_to(root).as_posix()
            for path in (root / top).rglob("*")
            if path.is_file() and path.suffix not in (".md", ".pyc")
        )
        for folder, num_files in sorted(widths.items()):
            if num_files > most:
                message = f"{num_files} files in one folder, at most {most} may be; divide it by topic"
                yield Violation(folder, 1, message)


LAYER_CALL = re.compile(r"weft_add_layer\s*\(([^)]*)\)")


def check_links(root: Path) -> Iterator[Violation]:
    """What each weft_add_layer(NAME x ... DEPENDS weft::y) links."""
    for path in sorted((root / "src").rglob("CMakeLists.txt")):
        text = path.read_text(encoding="utf-8")
        for call in LAYER_CALL.finditer(text):
            name = re.search(r"\bNAME\s+(\w+)", call.group(1))
            if not name or name.group(1) not in RANKS:
                continue
            for used in re.finditer(r"\bweft(?:::|_)(\w+)", call.group(1)):
                if used.group(1) in RANKS and not may_use(name.group(1), used.group(1)):
                    line = text.count("\n", 0, call.start(1) + used.start()) + 1
                    message = (
                        f"{name.group(1)} links {used.group(1)}, which is not below it; remove the dependency"
                    )
                    yield Violation(path.relative_to(root).as_posix(), line, message)


def checked_files(root: Path) -> list[str]:
    files = []
    for folder in CHECKED_FOLDERS:
        for path in (root / folder).rglob("*"):
            if path.suffix in CPP_SUFFIXES and path.is_file():
                files.append(path.relative_to(root).as_posix())
    return sorted(files)


def check(root: Path) -> list[Violation]:
    files = checked_files(root)
    includes = [include for file in files for include in includes_of(root, file)]
    found = [violation for file in files if (violation := unknown_layer(file))]
    found += [violation for include in includes for violation in check_include(include)]
    found += [violation for file in files for violation in check_throws(root, file)]
    found += [violation for file in files for violation in check_extension(root, file)]
    found += check_cycles(files, includes)
    return [*found, *check_links(root), *check_widths(root)]


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    files = checked_files(root)
    if not files:
        print(f"check_layers: no C++ files under {root}: nothing was checked", file=sys.stderr)
        return 1
    violations = check(root)
    for violation in violations:
        print(violation)
    print(f"check_layers: {len(files)} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
