"""`weft cmake-dir`: the folder of the CMake package, for find_package(weft)."""

from __future__ import annotations

import sys
from pathlib import Path


def main(package: Path) -> int:
    """Prints the folder in which `package`, the folder of the Python package, has weft-config.cmake."""
    # lib, or lib64 where the system has that.
    config = next(iter(package.glob("lib*/cmake/weft/weft-config.cmake")), None)
    if config is None:
        print(
            f"weft cmake-dir: {package} has no C++ libraries: `make demo` installs Weft without them. "
            "Install a wheel of `make wheel`, or run `cmake --install BUILD --component devel --prefix DIR` "
            "in the clone",
            file=sys.stderr,
        )
        return 2
    print(config.parent)
    return 0
