"""Where other PEs find the class of elements of a chare class: as ``<module>.<class>`` of this module.

A chare class may be in any module, so names are looked up when they are asked for.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from weft.charm4py._elements import element_class


class _Named:
    """What is at a dotted name: a module, or the class of elements of the chare class there."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        found = getattr(sys.modules.get(self._path), name, None)
        if isinstance(found, type):
            return element_class(found)
        path = f"{self._path}.{name}"
        if path not in sys.modules:
            try:
                importlib.import_module(path)
            except ImportError:
                raise AttributeError(f"this PE has no chare class {path}") from None
        return _Named(path)


def __getattr__(name: str) -> Any:
    if name in sys.modules:
        return _Named(name)
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        importlib.import_module(name)
    except ImportError:
        raise AttributeError(f"this PE has no module {name}") from None
    return _Named(name)
