"""A job over TCP warns once that it needs a trusted network; a job over shared memory does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TCP = {"UCX_TLS": "tcp,self"}


@pytest.mark.parametrize(
    ("settings", "options", "warnings"),
    [
        (TCP, [], 1),
        ({**TCP, "WEFT_TRUSTED_NETWORK": "0"}, [], 1),
        ({**TCP, "WEFT_TRUSTED_NETWORK": "1"}, [], 0),
        (TCP, ["--trusted-network"], 0),
        ({}, [], 0),
    ],
)
def test_the_warning(
    run, fault_probe: Path, job_folder: Path, settings: dict[str, str], options: list[str], warnings: int
) -> None:
    environment = {**os.environ, "TMPDIR": str(job_folder), **settings}
    outcome = run("-n", 2, *options, fault_probe, "exit", 0, env=environment)
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stderr.count("any process that reaches its ports can write into its memory") == warnings
