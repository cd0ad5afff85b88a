"""`weft mpicc` and `weft mpicxx`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from weft.launch import mpi_compiler

ROOT = Path(__file__).resolve().parents[3]
HEADER_TEST = ROOT / "tests" / "mpi" / "header.c"


def weft(*arguments: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder as that of the package, without a real library."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / mpi_compiler.LIBRARY).touch()
    return tmp_path


def test_linking_names_the_library_and_where_it_is(package):
    argv = mpi_compiler.compiler_argv("mpicc", ["-O2", "a.c", "-o", "a"], {}, package)
    assert argv == [
        "cc",
        f"-I{package}/include",
        *["-O2", "a.c", "-o", "a"],
        *[f"-L{package}/lib", f"-Wl,-rpath,{package}/lib", "-l:libmpi_abi.so.1"],
    ]


@pytest.mark.parametrize("option", ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"])
def test_compiling_alone_does_not(package, option):
    argv = mpi_compiler.compiler_argv("mpicxx", [option, "a.cpp"], {}, package)
    assert argv == ["c++", f"-I{package}/include", option, "a.cpp"]


def test_without_an_input_nothing_is_linked(package):
    assert mpi_compiler.compiler_argv("mpicc", ["--version"], {}, package)[2:] == ["--version"]


def test_variables_name_the_compilers(package):
    environment = {"WEFT_CC": "ccache clang", "WEFT_CXX": "clang++", "CC": "weft mpicc"}
    assert mpi_compiler.compiler_argv("mpicc", [], environment, package)[:2] == ["ccache", "clang"]
    assert mpi_compiler.compiler_argv("mpicxx", [], environment, package)[0] == "clang++"


def test_a_package_without_the_library_is_an_error(tmp_path):
    with pytest.raises(mpi_compiler.CompilerError, match="built without MPI"):
        mpi_compiler.compiler_argv("mpicc", [], {}, tmp_path)


def test_show_prints_the_command_line():
    result = weft("mpicc", "--show", "-c", "a.c")
    assert result.returncode == 0
    assert shlex.split(result.stdout)[0] == "cc"
    assert shlex.split(result.stdout)[-2:] == ["-c", "a.c"]
    # Build systems ask without a source.
    words = shlex.split(weft("mpicxx", "-show").stdout)
    assert words[0] == "c++"
    assert words[-1] == "-l:libmpi_abi.so.1"
    assert "a.o" not in words


def test_a_compiler_that_is_not_there_is_an_error():
    result = weft("mpicc", "a.c", environment={**os.environ, "WEFT_CC": "no-such-compiler"})
    assert result.returncode == 2
    assert result.stderr == (
        "weft mpicc: no-such-compiler cannot be run (No such file or directory); set WEFT_CC to a compiler\n"
    )


def test_the_compilers_own_code_is_returned(tmp_path):
    (tmp_path / "wrong.c").write_text("#include <mpi.h>\nint main(void) { return MPI_Imagined; }\n")
    assert weft("mpicc", tmp_path / "wrong.c", "-o", tmp_path / "wrong").returncode == 1


@pytest.mark.parametrize(
    "command",
    [
        ["mpicc", "-std=c90", "-pedantic"],
        ["mpicc", "-std=c99", "-pedantic"],
        ["mpicc", "-std=c17", "-pedantic"],
        ["mpicxx", "-xc++", "-std=c++11"],
        ["mpicxx", "-xc++", "-std=c++20"],
    ],
    ids=" ".join,
)
def test_the_header_compiles_without_warnings(command):
    result = weft(*command, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", HEADER_TEST)
    assert result.stderr == ""
    assert result.returncode == 0


def test_help_lists_the_compilers():
    assert "mpicc" in weft("--help").stdout
    assert "--show" in weft("mpicc", "--help").stdout


def test_a_profiling_library_gets_the_calls_of_the_program_alone(tmp_path):
    programs = ROOT / "tests" / "mpi"
    tool = tmp_path / "libtool.so"
    program = tmp_path / "profiled"
    for command in (
        ["-shared", "-fPIC", programs / "tools/tool.c", "-o", tool],
        [programs / "tools/profiled.c", tool, f"-Wl,-rpath,{tmp_path}", "-o", program],
    ):
        assert weft("mpicc", *command).stderr == ""
    result = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert result.stderr == ""
    assert result.stdout == "1 sizes, 1 duplicates\n"
    assert result.returncode == 0
