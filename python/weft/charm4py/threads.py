"""`charm4py.threads`: the names that programs import from there."""

from __future__ import annotations

from weft.charm4py._futures import Future
from weft.charm4py._threads import NotThreadedError

__all__ = ["Future", "NotThreadedError"]
