"""Waiting for several things."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize("mode", ["gather", "wait", "as_completed"])
def test_waiting_together(expect_success: Callable[..., str], mode: str, num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "waiting_together.py", mode)
