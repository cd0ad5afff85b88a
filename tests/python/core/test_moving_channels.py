"""Channels of chares that move."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_no_message_is_lost_doubled_or_out_of_order(
    expect_success: Callable[..., str], num_pes: int, seed: int
) -> None:
    assert "all checked" in expect_success(num_pes, "moving_channels.py", "random", str(seed))


@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_a_stencil_is_balanced(expect_success: Callable[..., str], num_pes: int) -> None:
    ended = expect_success(num_pes, "moving_channels.py", "stencil", environment={"WEFT_LB": "rotate"})
    assert "all checked" in ended


def test_a_channel_in_the_state_is_the_same_end(expect_success: Callable[..., str]) -> None:
    assert "all checked" in expect_success(2, "moving_channels.py", "handles")
