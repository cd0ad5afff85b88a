"""Modules of Weft that are imported at their first use."""

from __future__ import annotations

import sys
from typing import Any


def loaded(name: str) -> Any:
    """The module, or None if it is not imported.

    None too while another thread imports it, because it lacks names until then.
    """
    module = sys.modules.get(name)
    is_incomplete = getattr(getattr(module, "__spec__", None), "_initializing", False)
    return None if is_incomplete else module
