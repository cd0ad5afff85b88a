"""The headers that come with the package."""

from __future__ import annotations

from pathlib import Path


def include_dir() -> str:
    """The folder of the headers for kernels, for libraries that compile CUDA C++ when the program runs.

        module = cupy.RawModule(
            code='#include "weft/device/kernels.cuh"...',
            options=("-std=c++17", "-I" + weft.include_dir()),
        )

    ``weft/device/kernels.cuh`` has puts, signals and waits of kernels. What else C++ programs include is not
    in it: `cmake --install` puts that elsewhere.
    """
    return str(Path(__file__).absolute().parent.parent / "include")
