"""Arguments that the chares of a PE share, because none of them can change them."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize("mode", ["forms", "counted", "released", "leaves", "moved"])
def test_what_is_shared(expect_success: Callable[..., str], mode: str, num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "shared_arguments.py", mode)


@pytest.mark.parametrize("num_pes", [1, 2])
def test_no_chare_sees_what_another_one_has_changed(expect_success: Callable[..., str], num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "shared_arguments.py", "apart")
