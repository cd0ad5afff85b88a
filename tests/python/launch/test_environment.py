"""What `weft run` sets for its PEs, and what the user has set stays."""

from __future__ import annotations

import os
import threading

import pytest

from weft import _ucx_hooks
from weft.launch.environment import pe_environment


def test_a_job_has_one_hash_seed() -> None:
    seeds = {int(pe_environment({})["PYTHONHASHSEED"]) for _ in range(8)}
    assert len(seeds) > 1, "the same seed for every job"
    assert all(0 < seed < 2**32 for seed in seeds), (
        "Python refuses other seeds, and 0 turns hashing's secret off"
    )


def test_what_the_user_has_set_stays() -> None:
    user = {"PYTHONHASHSEED": "random", _ucx_hooks.GRACE: "1s", "WEFT_HANG_REPORT": "off"}
    assert pe_environment(user) == user


def test_the_launcher_around_is_named_and_its_connection_is_not_passed_on() -> None:
    outer = {"PMIX_NAMESPACE": "job", "PMIX_RANK": "3", "PMI_FD": "7", "WEFT_OUTER_PMIX": "another:0"}
    inner = pe_environment(outer)
    assert inner["WEFT_OUTER_PMIX"] == "job:3"
    assert "PMI_FD" not in inner
    assert "WEFT_OUTER_PMIX" not in pe_environment({"WEFT_OUTER_PMIX": "another:0"})
    assert "WEFT_INCARNATION" not in pe_environment({"WEFT_INCARNATION": "3"})


@pytest.mark.parametrize(
    ("before", "alone", "beside_threads"),
    [
        (None, _ucx_hooks.NO_THREADS, _ucx_hooks.WITH_THREADS),
        (_ucx_hooks.NO_THREADS, _ucx_hooks.NO_THREADS, _ucx_hooks.WITH_THREADS),
        ("1s", "1s", "1s"),
    ],
)
def test_the_wait_depends_on_threads(
    monkeypatch: pytest.MonkeyPatch, before: str | None, alone: str, beside_threads: str
) -> None:
    for num_threads, expected in ((1, alone), (3, beside_threads)):
        monkeypatch.setattr(_ucx_hooks, "_num_threads", lambda count=num_threads: count)
        monkeypatch.delenv(_ucx_hooks.GRACE, raising=False)
        if before is not None:
            monkeypatch.setenv(_ucx_hooks.GRACE, before)
        _ucx_hooks.shorten_wait()
        assert os.environ[_ucx_hooks.GRACE] == expected


def test_threads_are_counted() -> None:
    before = _ucx_hooks._num_threads()
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    try:
        assert _ucx_hooks._num_threads() == before + 1
    finally:
        go_on.set()
        thread.join()
