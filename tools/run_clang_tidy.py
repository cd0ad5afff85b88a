#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a build tree's compile_commands.json, one process per core.

Usage: tools/run_clang_tidy.py BUILD_FOLDER [FILE ...]. Without files: all of src/, python/src/, mpi/src/,
mpi/host/, examples/, miniapps/ and benchmarks/. The findings of a file are printed together; exits with 1
if there were any.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "python/src", "mpi/src", "mpi/host", "examples", "miniapps", "benchmarks")
# The compile commands are those of g++, which knows warnings that clang does not.
OPTIONS = (
    "--quiet",
    "--extra-arg=-Wno-unknown-warning-option",
    "--extra-arg=-Wno-deprecated-declarations",  # raised inside libstdc++ 12
)


def sources_of(build: Path) -> list[Path]:
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    files = {(Path(entry["directory"]) / entry["file"]).resolve() for entry in entries}
    files = {file for file in files if file.suffix != ".cu"}  # clang takes other options for them
    return sorted(file for file in files if any(file.is_relative_to(ROOT / folder) for folder in FOLDERS))


def tidy(build: Path, file: Path) -> tuple[Path, int, str]:
    result = subprocess.run(
        ["clang-tidy", *OPTIONS, "-p", build, file], capture_output=True, text=True, cwd=ROOT, check=False
    )
    # stderr carries counts of suppressed warnings; it matters when clang-tidy itself failed.
    return file, result.returncode, result.stdout + (result.stderr if result.returncode else "")


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    build = Path(arguments[0]).resolve()
    files = [Path(name).resolve() for name in arguments[1:]] or sources_of(build)
    if not files:
        print(f"run_clang_tidy: {build}/compile_commands.json names no source of Weft", file=sys.stderr)
        return 1
    start = time.monotonic()
    failed = 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for file, status, output in pool.map(lambda file: tidy(build, file), files):
            if status:
                failed += 1
                print(f"--- {file.relative_to(ROOT)}\n{output}", flush=True)
    print(f"run_clang_tidy: {len(files)} files, {failed} with findings, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
