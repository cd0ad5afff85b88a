"""What `weft info` prints."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterator


def info_lines() -> Iterator[str]:
    """Version, UCX in use and its transports, memory kinds and their devices, or what is missing."""
    yield f"weft {_version()}, Python {platform.python_version()}, {platform.machine()}"
    try:
        from weft import _core
    except ImportError as error:
        yield f"extension module: cannot be loaded ({error}); install the weft package, or run `make build`"
        return
    yield from _core.machine_report()
    yield from _core.memory_report()
    staging, gpus = os.environ.get("WEFT_STAGING", "device"), os.environ.get("WEFT_GPUS", "auto")
    yield f"settings of jobs started here: --staging {staging} --gpus {gpus}"


def _version() -> str:
    try:
        return importlib.metadata.version("weft")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
