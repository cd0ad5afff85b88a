#!/usr/bin/env python3
"""Runs mpi4py's own test suite on Weft's MPI library.

Usage: tools/mpi4py_suite.py [-n PROCESSES] [--stage 1|2] [-i REGEX]... [-e REGEX]... [-- OPTION...]

Gets mpi4py's sources from the package index, builds them with `weft mpicc`, and starts the suite with `weft run`. Sources
and build are kept in build/mpi4py. Options after `--` go to the suite (test/main.py). Exits with 77 and says so if the
sources are not there and cannot be downloaded; else with the suite's code.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/mpi4py"
VERSION = "4.1.2"
SKIPPED = 77

# The modules of the suite, by what they need of MPI.
STAGES = {
    1: "address environ errorcode exceptions msgspec pack.*rank util.* status request.* p2p.* doc objmodel".split(),
    2: "".split(),
}
# What Weft does not implement yet: processes that start later, one-sided communication, files, partitioned messages.
LATER = "spawn rma.* win.* io file.* dynproc part.* ulfm.*".split()


class Unavailable(Exception):
    """The sources cannot be had."""


def source_archive() -> Path:
    archive = FOLDER / f"mpi4py-{VERSION}.tar.gz"
    if archive.exists():
        return archive
    FOLDER.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", "mpi4py", "--no-deps"]
    command += ["--dest", str(FOLDER), f"mpi4py=={VERSION}"]
    if subprocess.run(command).returncode != 0 or not archive.exists():
        raise Unavailable(f"pip could not download mpi4py {VERSION}; is there a network?")
    return archive


def source_folder() -> Path:
    folder = FOLDER / f"mpi4py-{VERSION}"
    if not (folder / "test/main.py").exists():
        with tarfile.open(source_archive()) as archive:
            archive.extractall(FOLDER, filter="data")
    return folder


def compiler_wrapper() -> Path:
    """One word for MPICC."""
    wrapper = FOLDER / "mpicc"
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m weft mpicc "$@"\n', encoding="utf-8")
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    return wrapper


def built_key() -> str:
    """Changes when the extension module must be built again."""
    key = hashlib.sha256(f"{VERSION} {sys.version}".encode())
    for header in sorted((ROOT / "include/weft/mpi").glob("*.h")):
        key.update(header.read_bytes())
    return key.hexdigest()


def built_site() -> Path:
    """The folder with the built package."""
    site = FOLDER / "site"
    stamp = FOLDER / "site.key"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == built_key():
        return site
    shutil.rmtree(site, ignore_errors=True)
    environment = {**os.environ, "MPICC": str(compiler_wrapper()), "MPI4PY_BUILD_MPICC": str(compiler_wrapper())}
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir"]
    command += ["--target", str(site), str(source_folder())]
    subprocess.run(command, env=environment, check=True)
    stamp.write_text(built_key(), encoding="utf-8")
    return site


def suite_command(processes: int, options: list[str]) -> list[str]:
    command = [sys.executable, "-m", "weft", "run", "-n", str(processes), "--", sys.executable]
    return [*command, str(source_folder() / "test/main.py"), "-q", *options]


def selection(stage: int | None) -> list[str]:
    if stage is None:
        return []
    names = [name for number in range(1, stage + 1) for name in STAGES[number]]
    return [word for name in names for word in ("-i", name)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--processes", type=int, default=2)
    parser.add_argument("--stage", type=int, choices=sorted(STAGES))
    parser.add_argument("-i", "--include", action="append", default=[], metavar="REGEX")
    parser.add_argument("-e", "--exclude", action="append", default=[], metavar="REGEX")
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    try:
        site = built_site()
    except Unavailable as reason:
        print(f"SKIPPED: mpi4py's test suite did not run: {reason}", file=sys.stderr)
        return SKIPPED
    options = selection(arguments.stage)
    for flag, words in (("-i", arguments.include), ("-e", arguments.exclude)):
        options += [word for name in words for word in (flag, name)]
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    command = suite_command(arguments.processes, options + arguments.options)
    return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
