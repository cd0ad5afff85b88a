"""Python objects on channels, and channels of a chare to itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("check", ["0", "1"])
@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize("mode", ["exchange", "early", "destroy", "end"])
def test_objects(expect_success: Callable[..., str], mode: str, num_pes: int, check: str) -> None:
    environment = {"WEFT_CHECK": check}
    assert expect_success(num_pes, "channel_objects.py", mode, environment=environment) == "all checked\n"
