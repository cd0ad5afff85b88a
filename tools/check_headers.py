#!/usr/bin/env python3
"""Compiles headers alone and twice over, so that each includes what it uses and has its guard.

Usage: tools/check_headers.py BUILD_FOLDER [--changed]

--changed: only the headers that tools/linted_commit.py names. cmake/WeftHeaderCheck.cmake makes the sources
that are compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from linted_commit import ROOT, changed_files


def outputs_of(build: Path) -> dict[str, str]:
    """The object that checks each header, by the end of the header's path, "machine/machine.h"."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    # Ninja knows the objects by their paths in the build folder.
    headers = build / "headers"
    found = {}
    for entry in entries:
        source = Path(entry["file"])
        if source.is_relative_to(headers):
            # The folder below headers/ says where the header was found.
            output = os.path.relpath(build / entry["output"], build)
            found["/".join(source.relative_to(headers).parts)[: -len(".cpp")]] = output
    return found


# The names of cmake/WeftHeaderCheck.cmake, and the folders that the headers are in.
FOLDERS = {
    "public": "include",
    "private": "src",
    "mpi": "mpi/src",
    "mpi_host": "mpi/host",
    "python": "python/src",
}


def header_of(name: str) -> Path:
    """The header that "private/machine/machine.h" stands for."""
    kind, _, rest = name.partition("/")
    return ROOT / FOLDERS[kind] / rest


def main(arguments: list[str]) -> int:
    if not arguments or arguments[1:] not in ([], ["--changed"]):
        print(__doc__, file=sys.stderr)
        return 2
    build = Path(arguments[0]).resolve()
    changed = changed_files() if arguments[1:] else None
    outputs = outputs_of(build)
    if not outputs:
        print(f"check_headers: {build}/compile_commands.json names no header", file=sys.stderr)
        return 1
    wanted = [output for name, output in outputs.items() if changed is None or header_of(name) in changed]
    status = 0
    if wanted:
        status = subprocess.run(
            ["cmake", "--build", build, "--target", *wanted, "--", "-k", "0"], cwd=ROOT, check=False
        ).returncode
    print(
        f"check_headers: {len(wanted)} of {len(outputs)} headers read, {'with' if status else 'no'} findings"
    )
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
