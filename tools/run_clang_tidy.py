#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a build tree's compile_commands.json, one process per core.

Usage: tools/run_clang_tidy.py BUILD_FOLDER [--changed | FILE ...]. Without files: all of src/, python/src/,
mpi/src/, mpi/host/, examples/, miniapps/ and benchmarks/. --changed: of these, the sources that have changed
(tools/linted_commit.py), and for each header that has changed one source that includes it. The findings of a
file are printed together; exits with 1 if there were any.

Most of the time goes into reading headers, so of all files several sources of one target are read as one.
If anything is found there, each of them is read again alone, and that result counts. Files that are named or
have changed are read alone, so a missing #include is found.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from linted_commit import changed_files

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "python/src", "mpi/src", "mpi/host", "examples", "miniapps", "benchmarks")
HEADER_FOLDERS = ("include/weft", *FOLDERS)
# Where the compiler looks for what is included, but for the folder of the file itself.
INCLUDE_FOLDERS = ("include", "src", "python/src", "mpi/src", "mpi/host", ".")
# The compile commands are those of g++, which knows warnings that clang does not.
OPTIONS = (
    "--quiet",
    "--extra-arg=-Wno-unknown-warning-option",
    "--extra-arg=-Wno-deprecated-declarations",  # raised inside libstdc++ 12
)
# For several sources that are read as one.
OPTIONS_TOGETHER = (
    "--checks=-bugprone-suspicious-include",
    f"--header-filter=/({'|'.join((*FOLDERS, 'include/weft'))})/",
)
MOST_TOGETHER = 6
# Programs have a main() each, and the sources of the Python extension have names of their own in common.
ALONE = ("python", "examples", "miniapps", "benchmarks")


class Finding(NamedTuple):
    file: Path
    text: str


def without_precompiled_headers(words: list[str]) -> list[str]:
    """A source is read with the headers that it names itself."""
    kept = [word for word in words if word != "-Winvalid-pch"]
    for i in range(len(kept) - 1, 0, -1):
        if kept[i - 1] == "-include" and kept[i].endswith("cmake_pch.hxx"):
            del kept[i - 1 : i + 1]
    return kept


def commands_of(build: Path) -> dict[Path, tuple[str, ...]]:
    """The options that each source is compiled with, without its own name and the name of its object."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    commands = {}
    for entry in entries:
        file = (Path(entry["directory"]) / entry["file"]).resolve()
        words = without_precompiled_headers(shlex.split(entry["command"]))
        own = {
            words.index("-o") + 1,
            *(i for i, word in enumerate(words) if word in ("-o", "-c", entry["file"])),
        }
        commands[file] = (entry["directory"], *(word for i, word in enumerate(words) if i not in own))
    return commands


def sources_of(commands: dict[Path, tuple[str, ...]]) -> list[Path]:
    files = [file for file in commands if file.suffix != ".cu"]  # clang takes other options for them
    return sorted(file for file in files if any(file.is_relative_to(ROOT / folder) for folder in FOLDERS))


def includes_of(file: Path) -> set[Path]:
    """The files of this repository that `file` includes."""
    folders = (file.parent, *(ROOT / name for name in INCLUDE_FOLDERS))
    found = set()
    for name in re.findall(r'^#include "([^"]+)"', file.read_text(encoding="utf-8"), re.MULTILINE):
        path = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if path is not None:
            found.add(path.resolve())
    return found


def sources_to_read(changed: set[Path], sources: list[Path]) -> list[Path]:
    """The changed sources, and for each changed header its own source or else one that includes it.

    If only headers include a header, one that includes these.
    """
    headers = [file for name in HEADER_FOLDERS for file in (ROOT / name).rglob("*.h")]
    users: dict[Path, list[Path]] = defaultdict(list)
    for file in (*sources, *headers):
        for included in includes_of(file):
            users[included].append(file.resolve())
    wanted = {source for source in sources if source in changed}
    for header in sorted(file for file in changed if file.suffix == ".h"):
        seen = {header}
        level = [header]
        while level:
            above = sorted({user for file in level for user in users[file]} - seen)
            found = [user for user in above if user in sources]
            if found:
                own = [user for user in found if user.stem == header.stem]
                wanted.add((own or found)[0])
                break
            seen.update(above)
            level = above
        else:
            if any(header.is_relative_to(ROOT / name) for name in HEADER_FOLDERS):
                print(f"run_clang_tidy: no source includes {header.relative_to(ROOT)}; it was not read")
    return sorted(wanted)


def batches_of(files: list[Path], commands: dict[Path, tuple[str, ...]]) -> list[list[Path]]:
    """Sources of one folder that have the same options."""

    def key(file: Path) -> tuple[str, ...]:
        is_alone = file.relative_to(ROOT).parts[0] in ALONE
        return (str(file if is_alone else file.parent), file.suffix, *commands[file])

    batches = []
    for _, group in itertools.groupby(sorted(files, key=key), key):
        together = list(group)
        number = -(-len(together) // MOST_TOGETHER)
        batches += [together[i::number] for i in range(number)]
    return sorted(batches, key=len, reverse=True)


def run(arguments: list[str | Path]) -> tuple[int, str]:
    result = subprocess.run(
        ["clang-tidy", *OPTIONS, *arguments], capture_output=True, text=True, cwd=ROOT, check=False
    )
    # stderr carries counts of suppressed warnings; it matters when clang-tidy itself failed.
    return result.returncode, result.stdout + (result.stderr if result.returncode else "")


def read(file: Path, command: tuple[str, ...], *options: str) -> tuple[int, str]:
    """Runs clang-tidy over `file` with the options that a source is compiled with."""
    entry = {"directory": command[0], "file": str(file), "arguments": [*command[1:], "-c", str(file)]}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "compile_commands.json").write_text(json.dumps([entry]), encoding="utf-8")
        return run([*options, "-p", folder, file])


def is_clean_together(batch: list[Path], command: tuple[str, ...]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        together = Path(folder) / f"together{batch[0].suffix}"
        together.write_text("".join(f'#include "{file}"\n' for file in batch), encoding="utf-8")
        status, _ = read(together, command, *OPTIONS_TOGETHER, f"--config-file={ROOT / '.clang-tidy'}")
    return status == 0


def tidy(batch: list[Path], commands: dict[Path, tuple[str, ...]]) -> list[Finding]:
    if len(batch) > 1 and is_clean_together(batch, commands[batch[0]]):
        return []
    findings = []
    for file in batch:
        status, text = read(file, commands[file])
        if status:
            findings.append(Finding(file, text))
    return findings


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    build = Path(arguments[0]).resolve()
    commands = commands_of(build)
    all_sources = sources_of(commands)
    changed = changed_files() if arguments[1:] == ["--changed"] else None
    named = [] if arguments[1:] == ["--changed"] else [Path(name).resolve() for name in arguments[1:]]
    if changed is not None:
        files = named = sources_to_read(changed, all_sources)
    else:
        files = named or all_sources
    if not all_sources:
        print(f"run_clang_tidy: {build}/compile_commands.json names no source of Weft", file=sys.stderr)
        return 1
    if unknown := [str(file) for file in files if file not in commands]:
        print(
            f"run_clang_tidy: {build}/compile_commands.json does not name {', '.join(unknown)}",
            file=sys.stderr,
        )
        return 1
    start = time.monotonic()
    failed = 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        batches = [[file] for file in files] if named else batches_of(files, commands)
        for findings in pool.map(lambda batch: tidy(batch, commands), batches):
            for finding in findings:
                failed += 1
                print(f"--- {finding.file.relative_to(ROOT)}\n{finding.text}", flush=True)
    print(f"run_clang_tidy: {len(files)} files, {failed} with findings, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
