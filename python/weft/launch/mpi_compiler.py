"""`weft mpicc` and `weft mpicxx`: the C or C++ compiler with Weft's <mpi.h> and libmpi_abi.so.1.

The compiler is cc or c++; WEFT_CC and WEFT_CXX name another one. The variables CC and CXX are not read,
because build systems set them to this command.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LIBRARY = "libmpi_abi.so.1"
# Name of the command: (variable, default).
COMPILERS = {"mpicc": ("WEFT_CC", "cc"), "mpicxx": ("WEFT_CXX", "c++")}
# --show is ours. Build systems know the ones of MPICH and Open MPI.
SHOW_OPTIONS = ("--show", "-show", "--showme", "-showme")
# With one of these the compiler does not link.
WITHOUT_LINKING = ("-c", "-S", "-E", "-M", "-MM", "-fsyntax-only")


class CompilerError(Exception):
    """The compiler cannot be called."""


def package_folder() -> Path:
    """The folder of <mpi.h> and the library, in an installed package and in a build tree."""
    return Path(__file__).parent.parent / "mpi"


def is_linking(arguments: Sequence[str]) -> bool:
    """Whether the compiler links. Without an input it prints something, for instance its version."""
    return any(not word.startswith("-") for word in arguments) and not any(
        word in WITHOUT_LINKING for word in arguments
    )


def compiler_argv(
    command: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path
) -> list[str]:
    """The command line of the compiler."""
    library = folder / "lib" / LIBRARY
    if not library.exists():
        raise CompilerError(
            f"{library} does not exist: this Weft was built without MPI, as `make demo` builds it; "
            "run `make build` in the clone, or install Weft with WEFT_BUILD_MPI=ON"
        )
    variable, default = COMPILERS[command]
    compiler = shlex.split(environment.get(variable) or default)
    argv = [*compiler, f"-I{folder / 'include'}", *arguments]
    if is_linking(arguments):
        argv += [f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", f"-l:{LIBRARY}"]
    return argv


def main(command: str, arguments: Sequence[str]) -> int:
    """Becomes the compiler, or prints its command line."""
    show = [word for word in arguments if word in SHOW_OPTIONS]
    rest = [word for word in arguments if word not in SHOW_OPTIONS]
    try:
        # Asked without sources, a build system wants to know the options for both steps.
        argv = compiler_argv(command, rest or ["a.o"] if show else rest, os.environ, package_folder())
        if show:
            print(shlex.join(word for word in argv if rest or word != "a.o"))
            return 0
        sys.stdout.flush()
        os.execvp(argv[0], argv)
    except CompilerError as error:
        print(f"weft {command}: {error}", file=sys.stderr)
    except OSError as error:
        variable, _ = COMPILERS[command]
        print(
            f"weft {command}: {argv[0]} cannot be run ({error.strerror}); set {variable} to a compiler",
            file=sys.stderr,
        )
    return 2


def mpicc() -> int:
    """The program weft-mpicc, for build systems that want the name of a file."""
    return main("mpicc", sys.argv[1:])


def mpicxx() -> int:
    """The program weft-mpicxx."""
    return main("mpicxx", sys.argv[1:])
