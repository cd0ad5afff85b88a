#!/usr/bin/env python3
"""Runs mpi4py's own test suite on Weft's MPI library.

Usage: tools/mpi4py_suite.py [-n PROCESSES] [-- OPTION...]
       tools/mpi4py_suite.py [-n PROCESSES] --arrays TYPES [-- OPTION...]
       tools/mpi4py_suite.py [-n PROCESSES] --program PROGRAM.py [ARGUMENT...]
       tools/mpi4py_suite.py --build-optimized     for `weft bench`, in build/mpi4py/site-optimized

Gets mpi4py's sources from the package index, builds them with `weft mpicc`, and starts the suite with
`weft run`. Sources and build are kept in build/mpi4py. Options after `--` go to the suite, for example
`-i test_p2p`. No module is left out.
Exits with 77 and says so if the sources cannot be had; else with the suite's code.

The build serves every Python from 3.10 on. A machine without a network takes it from another one that has the
same header: copy build/mpi4py/site, build/mpi4py/site.key and build/mpi4py/mpi4py-*/test.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from weft.launch.mpi4py_wheel import VERSION, build_environment

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/mpi4py"
SKIPPED = 77

# Runs the suite's main program, the second argument, with arrays of CuPy. The first argument names their
# types. The suite fills unsigned arrays with -1, which NumPy 2 refuses; it converts the number for its arrays
# of NumPy alone. Numba compiles a kernel for each assignment to an array, and the suite makes thousands.
DEVICE_ARRAYS = """
import runpy, sys
types = sys.argv[1]
sys.argv = sys.argv[2:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
sys.modules["numba"] = None
import arrayimpl, numpy

array = arrayimpl.GPUArrayCuPy
for left_out in set(array.TypeMap) - set(types):
    del array.TypeMap[left_out]
whole_init = array.__init__

def __init__(self, arg, typecode, *more, **named):
    if isinstance(arg, int):
        arg = numpy.asarray(arg).astype(typecode).item()
    whole_init(self, arg, typecode, *more, **named)

array.__init__ = __init__
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class UnavailableError(Exception):
    """The sources cannot be had."""


def source_archive() -> Path:
    archive = FOLDER / f"mpi4py-{VERSION}.tar.gz"
    if archive.exists():
        return archive
    FOLDER.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", "mpi4py", "--no-deps"]
    command += ["--retries", "1", "--timeout", "20"]  # without a network pip would try for minutes
    command += ["--dest", str(FOLDER), f"mpi4py=={VERSION}"]
    if subprocess.run(command, check=False).returncode != 0 or not archive.exists():
        raise UnavailableError(f"pip could not download mpi4py {VERSION}; is there a network?")
    return archive


def source_folder() -> Path:
    folder = FOLDER / f"mpi4py-{VERSION}"
    if not (folder / "test/main.py").exists():
        with tarfile.open(source_archive()) as archive:
            archive.extractall(FOLDER)
    return folder


def built_key() -> str:
    """Changes when the extension module must be built again."""
    key = hashlib.sha256(f"{VERSION} abi3 {platform.machine()}".encode())
    for header in sorted((ROOT / "include/weft/mpi").glob("*.h")):
        key.update(header.read_bytes())
    return key.hexdigest()


@contextlib.contextmanager
def only_one_process() -> Iterator[None]:
    """Processes take turns: tests that run at the same time find the package built, or build it once."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def built_site(optimized: bool = False) -> Path:
    """The folder with the built package. Optimised code takes minutes to compile."""
    with only_one_process():
        return build_site(optimized)


def build_site(optimized: bool) -> Path:
    name = "site-optimized" if optimized else "site"
    site = FOLDER / name
    stamp = FOLDER / f"{name}.key"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == built_key():
        return site
    sources = source_folder()
    for stale in (site, sources / "build"):
        shutil.rmtree(stale, ignore_errors=True)
    cflags = {"CFLAGS": "-O2" if optimized else "-O0"}
    environment = build_environment({**os.environ, **cflags}, FOLDER / "mpicc")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir"]
    subprocess.run([*command, "--target", str(site), str(sources)], env=environment, check=True)
    stamp.write_text(built_key(), encoding="utf-8")
    return site


def run_environment(site: Path) -> dict[str, str]:
    """With this mpi4py, and with the library of this machine: mpi4py may have been built on another one."""
    from weft.launch.mpi_compiler import package_folder

    first = {"PYTHONPATH": str(site), "LD_LIBRARY_PATH": str(package_folder() / "lib")}
    paths = {
        name: os.pathsep.join(filter(None, [folder, os.environ.get(name)])) for name, folder in first.items()
    }
    # The tests of files call MPI_File_sync hundreds of times, which waits for the disk.
    memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}
    return {**memory, **os.environ, **paths}


def launched(processes: int, *words: str) -> list[str]:
    return [sys.executable, "-m", "weft", "run", "-n", str(processes), sys.executable, *words]


def suite_command(processes: int, program: list[str], options: list[str]) -> list[str]:
    return launched(processes, *program, str(source_folder() / "test/main.py"), "-q", *options)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", "--processes", type=int, default=2)
    parser.add_argument(
        "--program", metavar="PROGRAM.py", help="runs a program of yours instead of the suite"
    )
    parser.add_argument(
        "--build-optimized", action="store_true", help="builds mpi4py for measurements, and runs nothing"
    )
    parser.add_argument(
        "--arrays",
        metavar="TYPES",
        help="the suite with arrays of CuPy of these types, for example id",
    )
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    try:
        site = built_site(arguments.build_optimized)
    except UnavailableError as reason:
        print(f"SKIPPED: mpi4py's test suite did not run: {reason}", file=sys.stderr)
        return SKIPPED
    if arguments.build_optimized:
        print(site)
        return 0
    if arguments.program:
        command = launched(arguments.processes, arguments.program, *arguments.options)
    else:
        options = arguments.options
        program = ["-c", DEVICE_ARRAYS, arguments.arrays] if arguments.arrays else []
        if arguments.arrays:
            options = ["--cupy", *options]
        command = suite_command(arguments.processes, program, options)
    return subprocess.run(command, env=run_environment(site), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
