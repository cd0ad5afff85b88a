"""The wheel where no compiler is: pip installs it, and programs run on two PEs.

`make test` does it on this system without its compilers: an overlay of its files, entered by chroot in a
mount namespace of its own. `make test-install` does it on a fresh Debian and a fresh Ubuntu too, with their
Pythons and each that this machine has; WEFT_DEBOOTSTRAP names the releases.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs"
# Uses functions that the stable ABI does not promise.
CONTEXTS = PROGRAMS.parents[1] / "python" / "core" / "programs" / "waiting" / "contexts.py"
CANNOT_MOUNT = 77
# The compilers of Debian and of other systems lie in /usr/bin. Whiteouts of an overlay hide them.
WITHOUT_COMPILERS = f"""
mount -t tmpfs tmpfs "$work" || exit {CANNOT_MOUNT}
mkdir "$work/upper" "$work/work" "$work/root"
layers=lowerdir=/,upperdir=$work/upper,workdir=$work/work
mount -t overlay -o "$layers" overlay "$work/root" || exit {CANNOT_MOUNT}
root=$work/root
cd "$root/usr/bin"
rm -f cc c++ c89* c99* gcc* g++* cpp* clang* ld ld.* as -- *-linux-gnu-g* *-linux-gnu-c* *-linux-gnu-ld*
"""
ENTER = """
for folder in dev proc sys; do mkdir -p "$root/$folder"; mount --rbind "/$folder" "$root/$folder"; done
mkdir -p "$root/given"
mount -t tmpfs tmpfs "$root/given"
for name in $given; do mkdir "$root/given/$name"; mount --bind "${!name}" "$root/given/$name"; done
if [ "$prefix" != /usr ]; then mkdir -p "$root$prefix"; mount --bind "$prefix" "$root$prefix"; fi
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 \\
    bash /given/programs/install_and_run.sh "$python" "$source"
"""


def base_python() -> tuple[str, str]:
    """The interpreter below this environment, and its prefix."""
    return os.path.realpath(sys.executable), sys.base_prefix


def need_root() -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("NOT TESTED: a chroot needs root and unshare(1)")


@pytest.fixture(scope="session")
def wheels(request: pytest.FixtureRequest) -> Path:
    """The folder of the wheel: WEFT_WHEELS, else where `make test-python` has made that of the build tree."""
    named = os.environ.get("WEFT_WHEELS")
    folder = Path(named).resolve() if named else request.getfixturevalue("build_folder") / "wheel"
    if not list(folder.glob("weft-*.whl")):
        pytest.skip(f"NOT TESTED: {folder} has no wheel; `make test-python` or `make wheel` makes one")
    return folder


def run_in(
    system: str, python: str, prefix: str, source: str, given: dict[str, Path]
) -> subprocess.CompletedProcess[str]:
    """Runs install_and_run.sh; `system` is the part of a shell script that sets `root`."""
    variables = {name: str(folder) for name, folder in {**given, "programs": PROGRAMS}.items()}
    environment = {**os.environ, **variables, "given": " ".join(variables), "source": source}
    environment |= {"python": python, "prefix": prefix}
    script = "set -eu\nmount --make-rprivate /\n" + system + ENTER
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode == CANNOT_MOUNT:
        pytest.skip(f"NOT TESTED: this system cannot mount an overlay of its files: {done.stderr}")
    return done


def expect_all_ran(done: subprocess.CompletedProcess[str], with_mpi: bool) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[(1000, 0), (1000, 1)]\n" in done.stdout
    assert re.search(r"UCX \d+\.\d+\.\d+.*libucx/lib/libucp", done.stdout)
    assert ("sum 3\n" in done.stdout) == with_mpi
    assert "cannot be run" in done.stderr  # weft mpicc
    assert "it needs a C compiler" in done.stderr  # weft mpi4py-wheel


@pytest.fixture
def mpi_program(tmp_path: Path) -> Path:
    """The folder of a program that was compiled where a compiler is."""
    folder = tmp_path / "build"
    folder.mkdir()
    command = [sys.executable, "-m", "weft", "mpicc", str(PROGRAMS / "sum.c"), "-o", str(folder / "sum")]
    subprocess.run(command, check=True, timeout=60)
    return folder


def test_this_system_without_its_compilers(wheels: Path, mpi_program: Path, tmp_path: Path) -> None:
    need_root()
    work = tmp_path / "work"
    work.mkdir()
    python, prefix = base_python()
    import numpy

    given = {"wheels": wheels, "site": Path(numpy.__file__).parents[1], "build": mpi_program}
    system = f"work={work}\n{WITHOUT_COMPILERS}"
    expect_all_ran(run_in(system, python, prefix, "site", given), with_mpi=True)


# Options of debootstrap(8), and what follows the folder. All releases of Ubuntu share the script gutsy.
RELEASES: dict[str, tuple[list[str], list[str]]] = {
    "bookworm": ([], []),
    "noble": (["--components=main,universe"], ["http://archive.ubuntu.com/ubuntu", "gutsy"]),
}


@pytest.fixture(params=RELEASES)
def fresh_system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A fresh Debian or Ubuntu with its Python, and no compiler."""
    release = request.param
    if release not in os.environ.get("WEFT_DEBOOTSTRAP", "").split():
        pytest.skip(f"NOT TESTED: a fresh {release}; `make test-install` does that")
    need_root()
    if shutil.which("debootstrap") is None:
        pytest.skip("NOT TESTED: debootstrap is missing; apt-get install debootstrap")
    folder = tmp_path / "system"
    options, source = RELEASES[release]
    command = ["debootstrap", "--variant=minbase", "--include=python3,python3-venv", *options, release]
    command += [str(folder), *source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    yield folder
    shutil.rmtree(folder)


def other_pythons() -> dict[str, tuple[str, str]]:
    """Interpreters of this machine that a system may borrow, with their prefixes, by version."""
    found = {}
    for minor in range(10, 15):
        code = "import os, sys; print(os.path.realpath(sys.executable), sys.base_prefix)"
        done = subprocess.run(
            ["bash", "-c", f'python3.{minor} -c "$0"', code], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            python, prefix = done.stdout.split()
            found[f"3.{minor}"] = python, prefix
    return found


@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
@pytest.mark.timeout(600)
def test_one_wheel_serves_each_python_of_the_stable_abi(wheels: Path, version: str, tmp_path: Path) -> None:
    if not (wheel := next(wheels.glob("weft-*-cp312-abi3-*.whl"), None)):
        pytest.skip(f"NOT TESTED: {wheels} has no wheel for the stable ABI; `make test-install` makes it")
    if (found := other_pythons().get(version)) is None:
        pytest.skip(f"NOT TESTED: this machine has no Python {version}")
    subprocess.run([found[0], "-m", "venv", tmp_path], check=True)
    python = tmp_path / "bin" / "python"
    # The packages that Weft needs come from the package index.
    subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for program in (PROGRAMS / "two_pes.py", CONTEXTS):
        command = [python, "-m", "weft", "run", "-n", "2", program]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.timeout(1200)
def test_a_fresh_system(fresh_system: Path, wheels: Path, tmp_path: Path) -> None:
    own = next((fresh_system / "usr" / "bin").glob("python3.[0-9]*")).name.removeprefix("python")
    pythons = {own: (f"/usr/bin/python{own}", "/usr")}
    pythons |= {version: one for version, one in other_pythons().items() if one[1] != "/usr"}
    for version, (python, prefix) in pythons.items():
        packages = tmp_path / version
        pip = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--only-binary=:all:",
            f"--python-version={version}",
        ]
        needed = ["numpy", "cloudpickle>=3", "libucx-cu13>=1.16", "rich>=13"]
        subprocess.run([*pip, f"--dest={packages}", *needed], check=True, timeout=300)
        given = {"wheels": wheels, "packages": packages}
        done = run_in(f"root={fresh_system}\n", python, prefix, "wheels", given)
        expect_all_ran(done, with_mpi=False)
        print(f"Python {version}: installed and run")
