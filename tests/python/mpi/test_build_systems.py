"""What build systems find of Weft's MPI: `weft mpi-bin`, CMake's FindMPI, and jobs of several programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HANG_S = 150

HELLO = """\
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank = -1, size = 0, flag = 0, *program = NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &program, &flag);
  const char* const name = argc > 1 ? argv[1] : "hello";
  printf("%s: rank %d of %d, program %d\\n", name, rank, size, flag ? *program : -1);
  return MPI_Finalize();
}
"""

PROJECT = """\
cmake_minimum_required(VERSION 3.14)
project(hello C CXX)
find_package(MPI REQUIRED COMPONENTS C CXX)
add_executable(in_c hello.c)
target_link_libraries(in_c MPI::MPI_C)
add_executable(in_cxx hello.cpp)
target_link_libraries(in_cxx MPI::MPI_CXX)
enable_testing()
foreach(program in_c in_cxx)
  add_test(NAME ${program}
           COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 2 ${MPIEXEC_PREFLAGS}
                   $<TARGET_FILE:${program}>)
  set_tests_properties(${program} PROPERTIES PASS_REGULAR_EXPRESSION "rank 1 of 2")
endforeach()
"""


def run(*words: object, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The folder of `weft mpi-bin`, in a cache of the test."""
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    folder = run(sys.executable, "-m", "weft", "mpi-bin", environment=environment).strip()
    assert run(sys.executable, "-m", "weft", "mpi-bin", environment=environment).strip() == folder
    assert folder.startswith(str(tmp_path / "cache"))
    return Path(folder)


def test_the_programs_compile_and_run(programs, tmp_path):
    (tmp_path / "hello.c").write_text(HELLO)
    run(programs / "mpicc", tmp_path / "hello.c", "-o", tmp_path / "hello")
    expected = [f"hello: rank {rank} of 2, program 0" for rank in range(2)]
    for launcher, option in (("mpiexec", "-n"), ("mpirun", "-np")):
        assert sorted(run(programs / launcher, option, 2, tmp_path / "hello").splitlines()) == expected
    for compiler in ("mpicxx", "mpic++", "mpiCC"):
        assert "libmpi_abi.so.1" in run(programs / compiler, "-show")


def test_the_programs_import_nothing_from_the_current_folder(programs, tmp_path, monkeypatch):
    (tmp_path / "argparse.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    assert "libmpi_abi.so.1" in run(programs / "mpicc", "-show")
    assert run(programs / "mpiexec", "-n", 1, "echo", "runs") == "runs\n"


def test_two_programs_are_ranks_of_one_world(programs, tmp_path):
    (tmp_path / "hello.c").write_text(HELLO)
    for name in ("a", "b"):
        run(programs / "mpicc", tmp_path / "hello.c", "-o", tmp_path / name)
    output = run(programs / "mpiexec", "-n", 1, tmp_path / "a", "one", ":", "-n", 2, tmp_path / "b", "two")
    assert sorted(output.splitlines()) == [
        "one: rank 0 of 3, program 0",
        "two: rank 1 of 3, program 1",
        "two: rank 2 of 3, program 1",
    ]


def test_several_programs_have_one_rank_for_each_pe(programs):
    done = subprocess.run(
        [programs / "mpiexec", "-n", "1", "--ranks", "4", "true", ":", "-n", "1", "false"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 2
    assert "a job of several programs (':') has one rank for each PE" in done.stderr


@pytest.mark.parametrize("named", ["by path", "by variables"])
def test_cmake_takes_both_compilers_and_the_launcher(programs, tmp_path, named):
    cmake = shutil.which("cmake")
    assert cmake is not None, "tools/setup installs it"
    for name, text in (("CMakeLists.txt", PROJECT), ("hello.c", HELLO), ("hello.cpp", HELLO)):
        (tmp_path / name).write_text(text)
    build = tmp_path / "build"
    options = [
        f"-DMPI_C_COMPILER={programs / 'mpicc'}",
        f"-DMPI_CXX_COMPILER={programs / 'mpicxx'}",
        f"-DMPIEXEC_EXECUTABLE={programs / 'mpiexec'}",
        "-DMPIEXEC_NUMPROC_FLAG=-n",
    ]
    path = {"PATH": f"{programs}:{os.environ['PATH']}"}
    if named == "by path":
        run(cmake, "-S", tmp_path, "-B", build, environment=path)
    else:
        run(cmake, "-S", tmp_path, "-B", build, *options)
    run(cmake, "--build", build)
    cache = (build / "CMakeCache.txt").read_text()
    assert f"={programs / 'mpiexec'}\n" in cache
    run(Path(cmake).parent / "ctest", "--test-dir", build)
