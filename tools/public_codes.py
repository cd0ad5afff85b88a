#!/usr/bin/env python3
"""Runs the tests of other people's MPI codes on Weft's MPI library.

Usage: tools/public_codes.py [-n PROCESSES]... [CODE ...]

Without names, all of these; each on 1, 2 and 4 processes unless -n says otherwise:

    mpi4py       its own suite, by tools/mpi4py_suite.py, which names the modules that it leaves out
    mpi4py-fft   parallel Fourier transforms: sub-arrays and MPI_Alltoallw; needs Debian's libfftw3-dev
    mpi4jax      MPI calls inside of compiled functions of JAX, from a C++ extension; downloads some 200 MB

and, only if named:

    hdf5         parallel HDF5 of Debian's sources, built with `weft mpicc`, and its parallel tests; builds
                 for some minutes; needs cmake, and `deb-src` lines in the sources of apt
    h5py         its suite, with its parallel tests, on that HDF5

Gets sources and packages from the package index and from Debian alone, and keeps them, built, in
build/public. Prints a line for each run. Exits with 1 if one has failed, with 77 if none could run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpi4py_suite import ROOT, SKIPPED, UnavailableError, built_site, launched, run_environment

from weft.launch.mpi4py_wheel import build_environment

FOLDER = ROOT / "build/public"
# A run of the tests of a code; some take a minute on a busy machine.
LIMIT_S = 900

HDF5_BUILD = FOLDER / "hdf5-build"
# Left out: t_pflush1 and t_pflush2, of which the first ends by an error on purpose; t_cache_image, which HDF5
# does not run; t_cache, whose processes ask one of them about each access, for minutes if they share cores.
HDF5_TESTS = (
    "testphdf5",
    "t_mpi",
    "t_bigio",
    "t_pread",
    "t_pshutdown",
    "t_prestart",
    "t_init_term",
    "t_shapesame",
    "t_filters_parallel",
)


@dataclass(frozen=True)
class Code:
    """A code on the package index whose sources contain its tests."""

    name: str
    version: str
    # Packages for its build, its run and its tests.
    needs: tuple[str, ...]
    # What is run, with `{sources}` for the folder of the sources, and `{tests}` for that of the tests in it:
    # each is a job of its own.
    jobs: tuple[tuple[str, ...], ...]
    # A header that the system must have, and Debian's package with it.
    header: tuple[str, str] | None = None
    uses_hdf5: bool = False
    is_default: bool = True

    @property
    def sources(self) -> Path:
        return FOLDER / f"{self.name.replace('-', '_')}-{self.version}"

    @property
    def site(self) -> Path:
        return FOLDER / f"{self.name}-site"


CODES = (
    Code(
        "mpi4py-fft",
        "2.0.6",
        ("cython", "numpy", "scipy", "setuptools<81", "wheel"),
        tuple((f"{{tests}}/test_{name}.py",) for name in ("pencil", "mpifft", "darray", "libfft", "fftw")),
        ("fftw3.h", "libfftw3-dev"),
    ),
    Code(
        "mpi4jax",
        "0.9.1.post2",
        ("jax==0.10.2", "nanobind", "numpy", "pytest", "setuptools>=82.0.1", "wheel"),
        (("-m", "pytest", "-q", "-p", "no:cacheprovider", "{tests}"),),
    ),
    Code(
        "h5py",
        "3.16.0",
        ("cython<4", "numpy", "packaging", "pkgconfig", "pytest", "pytest-mpi", "setuptools>=77.0.1"),
        (
            (
                *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "{sources}/pytest.ini"),
                # Left out: root may write a file that is read-only.
                *("-k", "not test_append_permissions", "--with-mpi", "--pyargs", "h5py"),
            ),
        ),
        uses_hdf5=True,
        is_default=False,
    ),
)


def pip(*words: object, environment: dict[str, str] | None = None) -> None:
    command = [sys.executable, "-m", "pip", *map(str, words), "--quiet"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr, end="", file=sys.stderr)
        raise UnavailableError(f"`pip {' '.join(map(str, words))}` has failed; is there a network?")


def environment_of(code: Code) -> dict[str, str]:
    """With the packages of the code, and with mpi4py on Weft."""
    environment = run_environment(built_site())
    return {**environment, "PYTHONPATH": os.pathsep.join([str(code.site), environment["PYTHONPATH"]])}


def compiler_environment(environment: dict[str, str]) -> dict[str, str]:
    """With the path of `weft mpicc` in MPICC."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    return build_environment(environment, FOLDER / "mpicc")


def fetch_hdf5() -> Path:
    """The sources of Debian's package, unpacked."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not (archives := sorted(FOLDER.glob("hdf5_*.orig.tar.*"))):
        command = ["apt-get", "source", "--quiet", "--download-only", "hdf5"]
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
        if not (archives := sorted(FOLDER.glob("hdf5_*.orig.tar.*"))):
            print(done.stderr, end="", file=sys.stderr)
            raise UnavailableError("`apt-get source hdf5` has failed; add deb-src to the sources of apt")
    with tarfile.open(archives[-1]) as archive:
        archive.extractall(FOLDER)
        return FOLDER / archive.getnames()[0].split("/")[0]


def built_hdf5(environment: dict[str, str]) -> Path:
    """The folder where parallel HDF5 is installed. `environment`: of the build."""
    installed = FOLDER / "hdf5"
    if (installed / "built").exists():
        return installed
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_C_COMPILER": environment["MPICC"],
        "CMAKE_INSTALL_PREFIX": installed,
        "ONLY_SHARED_LIBS": "ON",
        "HDF5_ENABLE_PARALLEL": "ON",
        "HDF5_BUILD_HL_LIB": "ON",
        "HDF5_BUILD_CPP_LIB": "OFF",
        "HDF5_BUILD_EXAMPLES": "OFF",
        "HDF5_BUILD_TOOLS": "OFF",
    }
    configure = [
        "-S",
        fetch_hdf5(),
        "-B",
        HDF5_BUILD,
        *(f"-D{name}={value}" for name, value in options.items()),
    ]
    parts = ("hdf5-shared", "hdf5_hl-shared", *HDF5_TESTS)
    components = ("headers", "libraries", "hlheaders", "hllibraries")
    HDF5_BUILD.mkdir(exist_ok=True)
    for words in (
        configure,
        ["--build", HDF5_BUILD, "--parallel", "2", "--target", *parts],
        *(["--install", HDF5_BUILD, "--component", one] for one in components),
    ):
        command = ["cmake", *map(str, words)]
        # Programs of its configuration write files where cmake runs.
        done = subprocess.run(
            command, env=environment, cwd=HDF5_BUILD, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    (installed / "built").touch()
    return installed


def build(code: Code) -> None:
    """Builds the code unless that has been done."""
    stamp = FOLDER / f"{code.name}-{code.version}.built"
    if stamp.exists():
        return
    if code.header and not (Path("/usr/include") / code.header[0]).exists():
        raise UnavailableError(f"it needs {code.header[0]}: install Debian's package {code.header[1]}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    pip("install", "--upgrade", "--target", code.site, *code.needs)
    # pip would build the code to look at it.
    pinned = f"{code.name}=={code.version}"
    pip("download", "--no-deps", "--no-binary", code.name, "--dest", FOLDER, pinned)
    with tarfile.open(f"{code.sources}.tar.gz") as archive:
        archive.extractall(FOLDER)
    environment = compiler_environment(environment_of(code))
    environment |= {"MPI4JAX_BUILD_MPICC": environment["MPICC"]}
    if code.uses_hdf5:
        hdf5 = built_hdf5(environment)
        environment |= {"CC": environment["MPICC"], "HDF5_MPI": "ON", "HDF5_DIR": str(hdf5)}
    options = ("--no-deps", "--no-build-isolation", "--no-cache-dir", "--upgrade", "--target", code.site)
    pip("install", *options, code.sources, environment=environment)
    stamp.touch()


def run_jobs(name: str, processes: int, commands: Sequence[list[str]], environment: dict[str, str]) -> bool:
    """Prints one line, and what the jobs that have failed have printed."""
    start = time.monotonic()
    failed = []
    for command in commands:
        # Tests write files into the folder where they run.
        done = subprocess.run(
            command, env=environment, cwd=FOLDER, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
        if done.returncode != 0:
            failed.append(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    outcome = f"{len(failed)} of {len(commands)} jobs failed" if failed else "passed"
    print(f"{name} on {processes} processes: {outcome} ({time.monotonic() - start:.0f} s)", flush=True)
    print("".join(failed), end="")
    return not failed


def run_code(name: str, processes: Sequence[int]) -> bool:
    if name == "mpi4py":
        suite = str(Path(__file__).with_name("mpi4py_suite.py"))
        built_site()
        jobs = {n: [[sys.executable, suite, "-n", str(n)]] for n in processes}
        environment = {**os.environ}
    elif name == "hdf5":
        environment = run_environment(built_site())
        built_hdf5(compiler_environment(environment))
        run = [sys.executable, "-m", "weft", "run", "-n"]
        tests = [str(HDF5_BUILD / "bin" / test) for test in HDF5_TESTS]
        jobs = {n: [[*run, str(n), test] for test in tests] for n in processes}
    else:
        code = next(one for one in CODES if one.name == name)
        build(code)
        folders = {"sources": code.sources, "tests": code.sources / "tests"}
        words = [[word.format(**folders) for word in job] for job in code.jobs]
        jobs = {n: [launched(n, *job) for job in words] for n in processes}
        environment = environment_of(code)
    FOLDER.mkdir(parents=True, exist_ok=True)
    outcomes = [run_jobs(name, n, commands, environment) for n, commands in jobs.items()]
    return all(outcomes)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ["mpi4py", *(code.name for code in CODES), "hdf5"]
    default_names = ["mpi4py", *(code.name for code in CODES if code.is_default)]
    parser.add_argument("-n", "--processes", type=int, action="append", metavar="PROCESSES")
    parser.add_argument("codes", nargs="*", metavar="CODE", help=", ".join(names))
    arguments = parser.parse_args()
    if unknown := set(arguments.codes) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    outcomes = []
    for name in arguments.codes or default_names:
        try:
            outcomes.append(run_code(name, arguments.processes or [1, 2, 4]))
        except UnavailableError as reason:
            print(f"SKIPPED: {name}: {reason}", file=sys.stderr)
    if not outcomes:
        return SKIPPED
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
