"""A user's own C++ project, outside the tree, builds against an installed Weft."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]

PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(own_program LANGUAGES CXX)
find_package(weft 0.1 REQUIRED)
foreach(program hello ten_methods channels)
  add_executable(${program} ${program}.cpp)
  target_link_libraries(${program} PRIVATE weft::weft)
endforeach()
"""


def run(*command: object) -> str:
    """Runs a command that has to succeed; returns its standard output."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_find_package_and_run(
    cmake: str, compiler: str, prefix: Path, tmp_path: Path, compile_cost: ModuleType
) -> None:
    for source in compile_cost.PROGRAMS.values():
        shutil.copy(source, tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
    build = tmp_path / "build"
    run(cmake, "-S", tmp_path, "-B", build, f"-Dweft_ROOT={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}")
    run(cmake, "--build", build)
    assert "hello from PE 0 of 1" in run(build / "hello")
    assert run(build / "ten_methods") == "2 first 3 7\n"
    assert run(build / "channels") == "1 0\n"


def test_the_cost_of_compiling_is_measured(compiler: str, prefix: Path, compile_cost: ModuleType) -> None:
    (cost,) = compile_cost.costs(
        prefix, compiler, 1, {"hello": compile_cost.PROGRAMS["hello"]}, levels=("-O0",)
    )
    assert cost["cpu_s"] > 0.1
    assert cost["text_bytes"] > 1000


def test_the_whole_program_of_a_page(cmake: str, compiler: str, prefix: Path, tmp_path: Path) -> None:
    """That of docs/pgas.md: the program, its CMakeLists.txt and its output on two PEs."""
    page = (ROOT / "docs" / "pgas.md").read_text(encoding="utf-8")
    found = re.search(r"```cpp\n(#include .*?)```(.*?)```text\n(.*?)```", page, re.DOTALL)
    assert found
    program, between, output = found.groups()
    (tmp_path / "ring.cpp").write_text(program, encoding="utf-8")
    project = re.search(r"( {4}cmake_minimum_required.*?)\n\n", between, re.DOTALL)
    assert project
    (tmp_path / "CMakeLists.txt").write_text(textwrap.dedent(project[1]), encoding="utf-8")
    build = tmp_path / "build"
    run(
        cmake,
        "-S",
        tmp_path,
        "-B",
        build,
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={compiler}",
    )
    run(cmake, "--build", build)
    printed = run(sys.executable, "-m", "weft", "run", "-n", 2, build / "ring")
    assert sorted(printed.splitlines()) == output.splitlines()


def test_installed_headers_are_the_public_ones(prefix: Path) -> None:
    installed = {path.relative_to(prefix / "include") for path in (prefix / "include").rglob("*.h")}
    public = {path.relative_to(ROOT / "include") for path in (ROOT / "include").rglob("*.h")}
    assert installed == public
    assert Path("weft/weft.h") in installed


def test_installed_libraries_hold_plain_objects(prefix: Path) -> None:
    """What link-time optimisation needs makes them 60 MB, and each link of a user's program 12 s."""
    libraries = list(prefix.rglob("libweft_*.a"))
    assert len(libraries) >= 7, libraries
    for library in libraries:
        sections = run("readelf", "--wide", "--section-headers", library)
        assert ".text" in sections
        assert ".gnu.lto_" not in sections, f"{library.name} is made for optimisation at link time"
