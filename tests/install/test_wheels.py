"""What the wheels contain: users get no tools for measuring Weft, which are in weft-bench."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from weft.cli import main
from weft.launch import cmake_package
from weft.launch.mpi4py_wheel import BUILD_TAG, VERSION, WheelError, build_environment, build_wheel

ROOT = Path(__file__).resolve().parents[2]


def contents(distribution: str) -> set[str]:
    """The folders and modules that a wheel has installed into site-packages."""
    try:
        files = metadata.files(distribution)
    except metadata.PackageNotFoundError:
        pytest.skip(f"NOT TESTED: {distribution} is not installed from a wheel; `make test-python` does that")
    assert files
    inside = [file for file in files if file.parts[0] != ".." and not file.parts[0].endswith(".dist-info")]
    return {"/".join(file.parts[:2]) for file in inside if file.suffix != ".pyc"}


def test_the_wheel_of_weft_is_the_package_without_the_tools() -> None:
    installed = contents("weft")
    assert {
        "weft/__init__.py",
        "weft/_cli",
        "weft/cli.py",
        "weft/include",
        "weft/launch",
        "weft/py.typed",
    } <= installed
    assert {"weft/bench", "weft/study"}.isdisjoint(installed)
    assert {path.split("/")[0] for path in installed} == {"weft"}


@pytest.fixture(scope="session")
def unpacked(build_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the wheel, beside the package libucx as in site-packages."""
    wheels = list((build_folder / "wheel").glob("weft-*.whl"))
    if not wheels:
        pytest.skip("NOT TESTED: no wheel in the build tree; `make test-python` makes it")
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheels[0]) as archive:
        archive.extractall(folder)
    import libucx

    site = Path(libucx.__file__).parents[1]
    for package in site.glob("libucx*"):
        (folder / package.name).symlink_to(package)
    return folder


def test_cmake_finds_the_cpp_package_of_the_wheel(
    unpacked: Path, cmake: str, compiler: str, tmp_path: Path, capsys
) -> None:
    assert cmake_package.main(unpacked / "weft") == 0
    cmake_dir = capsys.readouterr().out.strip()
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(own LANGUAGES CXX)\nfind_package(weft REQUIRED)\n"
        f"add_executable(hello {ROOT}/examples/01_hello/hello.cpp)\ntarget_link_libraries(hello weft::weft)\n"
        'message("UCX in ${ucx_DIR}")\n'
    )
    build = str(tmp_path / "build")
    configure = [cmake, "-S", str(tmp_path), "-B", build, f"-Dweft_DIR={cmake_dir}"]
    commands = [
        [*configure, f"-DCMAKE_CXX_COMPILER={compiler}"],
        [cmake, "--build", build],
        [f"{build}/hello"],
    ]
    done = [subprocess.run(command, capture_output=True, text=True, check=False) for command in commands]
    assert [one.returncode for one in done] == [0, 0, 0], [one.stdout + one.stderr for one in done]
    assert f"UCX in {unpacked}/libucx/lib/cmake/ucx" in done[0].stderr
    assert "hello from PE 0 of 1" in done[2].stdout


def test_a_package_without_the_cpp_libraries_says_so(tmp_path: Path, capsys) -> None:
    assert cmake_package.main(tmp_path) == 2
    assert "has no C++ libraries" in capsys.readouterr().err


def test_a_wheel_of_mpi4py_is_built_once(tmp_path: Path) -> None:
    there = tmp_path / f"mpi4py-{VERSION}-{BUILD_TAG}-cp310-abi3-linux_x86_64.whl"
    there.touch()
    assert build_wheel(tmp_path, {}) == there


def test_mpi4py_needs_a_compiler(tmp_path: Path) -> None:
    with pytest.raises(WheelError, match="needs a C compiler, and there is no missing-cc"):
        build_wheel(tmp_path, {"WEFT_CC": "missing-cc"})


def test_mpi4py_is_built_with_the_compiler_of_this_weft(tmp_path: Path) -> None:
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CFLAGS": "-O3"}
    environment = build_environment(given, tmp_path / "mpicc")
    assert environment["CFLAGS"] == "-O3"
    assert "$ORIGIN/../weft/mpi/lib" in environment["LDFLAGS"]
    # pip's own PYTHONPATH does not reach the compiler.
    done = subprocess.run(
        [environment["MPICC"], "--show"],
        env={**environment, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "-l:libmpi_abi.so.1" in done.stdout


def test_the_wheel_of_weft_bench_has_both_tools() -> None:
    installed = contents("weft-bench")
    assert {"weft_bench/cli.py", "weft_bench/study"} <= installed
    assert {path.split("/")[0] for path in installed} == {"weft_bench"}


def test_only_the_command_line_knows_weft_bench() -> None:
    sources = [path for path in (ROOT / "python").rglob("*.py") if "weft_bench" in path.read_text("utf-8")]
    assert [path.name for path in sources] == ["tools.py"]


@pytest.mark.parametrize("command", ["bench", "study"])
def test_without_weft_bench_a_sentence_says_how_to_install_it(monkeypatch, capsys, command: str) -> None:
    monkeypatch.setitem(sys.modules, "weft_bench", None)
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"weft {command}: the package weft-bench is not installed; in a clone of Weft run "
        "`pip install ./benchmarks`\n"
    )


@pytest.mark.parametrize("there", [True, False])
def test_help_lists_the_tools_that_are_there(monkeypatch, capsys, there: bool) -> None:
    if not there:
        monkeypatch.setitem(sys.modules, "weft_bench", None)
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    listed = {words[0] for line in lines if (words := line.split())}
    assert "lb" in listed
    assert ({"bench", "study"} <= listed) == there
