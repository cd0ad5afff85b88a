#!/usr/bin/env python3
"""Makes what follows from the table of MPI's functions, mpi/functions/*.txt.

Usage: generate.py --write            include/weft/mpi/mpi_functions.h and docs/mpi-functions.md
       generate.py --check            fails if one of the two is out of date
       generate.py --sources FOLDER   the generated sources and the version script, for the build

A function is implemented if a file of mpi/src defines it, or its large-count form.
"""

from __future__ import annotations

import sys
from pathlib import Path

from header import functions_header
from page import functions_page
from sources import profiling_source, states_of, stubs_source, version_script, wrappers_source
from table import read_table

ROOT = Path(__file__).resolve().parent.parent.parent


def committed_files() -> dict[Path, str]:
    topics = read_table(ROOT / "mpi/functions")
    states = states_of(topics, ROOT / "mpi/src")
    return {
        ROOT / "include/weft/mpi/mpi_functions.h": functions_header(topics),
        ROOT / "docs/mpi-functions.md": functions_page(topics, states),
    }


def built_files(folder: Path) -> dict[Path, str]:
    topics = read_table(ROOT / "mpi/functions")
    states = states_of(topics, ROOT / "mpi/src")
    return {
        folder / "wrappers.cpp": wrappers_source(topics, states),
        folder / "stubs.cpp": stubs_source(topics, states),
        folder / "profiling.cpp": profiling_source(topics),
        folder / "exported.map": version_script(topics),
    }


def differs(path: Path, text: str) -> bool:
    return not path.is_file() or path.read_text(encoding="utf-8") != text


def write(files: dict[Path, str]) -> None:
    # A file that stays as it is keeps its time, so that nothing is compiled again.
    for path, text in files.items():
        if differs(path, text):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def check(files: dict[Path, str]) -> int:
    stale = [path for path, text in files.items() if differs(path, text)]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is out of date; run mpi/generator/generate.py --write")
    return 1 if stale else 0


def main(arguments: list[str]) -> int:
    if arguments == ["--write"]:
        write(committed_files())
        return 0
    if arguments == ["--check"]:
        return check(committed_files())
    if len(arguments) == 2 and arguments[0] == "--sources":
        write(built_files(Path(arguments[1])))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
