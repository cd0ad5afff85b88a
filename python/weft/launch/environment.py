"""What `weft run` sets in the environment of every PE, unless the user has set it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from weft._ucx_hooks import GRACE, NO_THREADS


def pe_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The user's environment with the defaults of a job; the same for all PEs."""
    return {
        # Equal strings have equal hashes on all PEs, for example where a hash picks an element of an array.
        "PYTHONHASHSEED": str(1 + int.from_bytes(os.urandom(4), "little") % 0xFFFFFFFF),
        # A program that has just been started has no other threads when UCX is loaded.
        GRACE: NO_THREADS,
        **environment,
    }
