"""Which losses a job outlives whose program handles them."""

from __future__ import annotations

from weft.launch.losses.survival import Survival


def survival(*pes: int, may_lose_pe_0: bool = False) -> Survival:
    """That of a job in which these PEs outlive losses."""
    made = Survival()
    for pe in pes:
        made.outlives(pe, may_lose_pe_0=may_lose_pe_0)
    return made


def test_a_job_that_has_started_outlives_a_loss() -> None:
    assert survival(0, 1, 2).obstacle({2}, [0, 1]) is None


def test_a_pe_that_starts_or_cannot_outlive_losses_is_an_obstacle() -> None:
    assert "PE 1 cannot go on" in (survival(0, 2).obstacle({2}, [0, 1]) or "")


def test_only_jobs_without_main_outlive_pe_0() -> None:
    assert "main runs on PE 0" in (survival(0, 1).obstacle({0}, [1]) or "")
    assert survival(0, 1, may_lose_pe_0=True).obstacle({0}, [1]) is None


def test_the_last_pe_cannot_be_outlived() -> None:
    assert survival(0).obstacle({0}, []) == "no other PE is in the job"


def test_a_pe_that_has_finished_outlives_nothing() -> None:
    made = survival(0, 1)
    made.leave(0)
    assert made.obstacle({1}, []) is not None
