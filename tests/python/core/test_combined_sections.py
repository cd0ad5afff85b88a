"""Combined sections: chares of several collections, with calls and reductions of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("num_pes", [1, 2, 4])
@pytest.mark.parametrize("which", ["calls", "reductions", "refused"])
def test_combined_sections(expect_success: Callable[..., str], num_pes: int, which: str) -> None:
    assert "all checked" in expect_success(num_pes, "combined_sections.py", which)
