"""What `weft info` prints."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
from collections.abc import Iterator


def info_lines() -> Iterator[str]:
    """Version, UCX in use and its transports, memory kinds, GPUs; says what is missing and how to get it."""
    yield f"weft {_version()}, Python {platform.python_version()}, {platform.machine()}"
    try:
        core = importlib.import_module("weft._core")
    except ImportError as error:
        yield f"extension module: not there ({error}); install the weft package or run `make setup`"
        return
    yield from core.machine_report()


def _version() -> str:
    try:
        return importlib.metadata.version("weft")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
