"""`weft mpi4py-wheel`: builds mpi4py for the standard ABI of MPI, from its sources on the package index.

mpi4py's wheels on PyPI are for other MPI libraries. One wheel serves every Python from 3.10 on, and the
extension finds libmpi_abi.so.1 in the package weft beside it.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from weft.launch.mpi_compiler import CompilerError, compiler_argv, package_folder
from weft.launch.mpi_programs import program_text

VERSION = "4.1.2"
# The build tag in the wheel's name, which differs from that of a wheel for another MPI.
BUILD_TAG = "0weft"
# -O1 takes less time to compile than Python's own -O3; debug symbols are never read.
CFLAGS = "-O1 -g0"


class WheelError(Exception):
    """The wheel cannot be built. The message says what it needs."""


def build_wheel(folder: Path, environment: Mapping[str, str]) -> Path:
    """Builds the wheel in `folder`, unless it is there, and returns its path. Blocks for a minute or two.

    Raises:
        WheelError: the MPI library, a C compiler, pip or the sources are missing, or the build failed.
    """
    if (found := _built(folder)) is not None:
        return found
    _check_tools(environment)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-cache-dir", "--no-binary", "mpi4py"]
    with tempfile.TemporaryDirectory() as temporary:
        # What pip prints is not the command's result.
        done = subprocess.run(
            [*command, f"--wheel-dir={temporary}", f"mpi4py=={VERSION}"],
            env=build_environment(environment, Path(temporary, "mpicc")),
            stdout=sys.stderr,
            check=False,
        )
        if done.returncode != 0:
            raise WheelError(
                f"pip could not build mpi4py {VERSION} (its output is above). It needs the package index, "
                "for the sources of mpi4py and for Cython"
            )
        (built,) = Path(temporary).glob("mpi4py-*.whl")
        distribution, version, *tags = built.name.split("-")
        return Path(shutil.move(built, folder / "-".join([distribution, version, BUILD_TAG, *tags])))


def build_environment(environment: Mapping[str, str], compiler: Path) -> dict[str, str]:
    """What mpi4py's build reads. Writes `compiler`, a program that runs `weft mpicc`."""
    # pip hides the packages of this environment from what it starts, by a PYTHONPATH of its own.
    path = shlex.quote(environment.get("PYTHONPATH", ""))
    compiler.write_text(program_text("mpicc", f"export PYTHONPATH={path}"), encoding="utf-8")
    compiler.chmod(0o755)
    # The extension is mpi4py/MPI.abi3.so, beside the folder weft.
    beside = f"-Wl,-rpath,$ORIGIN/../{package_folder().relative_to(package_folder().parents[1])}/lib"
    return {
        **environment,
        "MPICC": str(compiler),
        "CFLAGS": environment.get("CFLAGS", CFLAGS),
        "LDFLAGS": f"{environment.get('LDFLAGS', '')} {beside}".strip(),
        "MPI4PY_BUILD_PYSABI": "abi3",
    }


def _built(folder: Path) -> Path | None:
    return next(iter(folder.glob(f"mpi4py-{VERSION}-{BUILD_TAG}-*.whl")), None)


def _check_tools(environment: Mapping[str, str]) -> None:
    try:
        compiler = compiler_argv("mpicc", ["a.c"], environment, package_folder())[0]
    except CompilerError as error:
        raise WheelError(str(error)) from None
    if shutil.which(compiler) is None:
        raise WheelError(
            f"it needs a C compiler, and there is no {compiler}: install one, set WEFT_CC to one, or build "
            "the wheel on another machine and copy it"
        )
    if importlib.util.find_spec("pip") is None:
        raise WheelError(f"it needs pip in this environment: run `{sys.executable} -m ensurepip`")


def main(folder: str) -> int:
    """The command: prints the path of the wheel."""
    try:
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        print(build_wheel(path, os.environ))
    except (WheelError, OSError) as error:
        print(f"weft mpi4py-wheel: {error}", file=sys.stderr)
        return 2
    return 0
