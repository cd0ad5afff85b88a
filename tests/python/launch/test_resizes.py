"""Another number of PEs: what was asked for, who leaves, and who gets which number."""

from __future__ import annotations

import math
import signal

import pytest

from weft.launch.command import MAX_PES, UsageError
from weft.launch.losses import recovery
from weft.launch.losses.resizes import Plan, Resizes, new_places, recovery_of

from .test_deaths import KILLED, Judge


def test_the_last_pes_leave_a_job_that_shrinks() -> None:
    resizes = Resizes()
    assert resizes.ask(3, 5) is None
    assert resizes.new_plan(5) == Plan(1, 3, (3, 4))
    assert resizes.plan(1) == Plan(1, 3, (3, 4)) and resizes.plan(2) is None


def test_a_job_that_grows_keeps_its_pes() -> None:
    resizes = Resizes()
    assert resizes.ask(4, 2) is None
    plan = resizes.new_plan(2)
    assert plan == Plan(1, 4, ()) and plan.sentence(2) == "the job goes from 2 to 4 PEs"


def test_as_many_pes_as_there_are_need_no_plan() -> None:
    resizes = Resizes()
    assert resizes.ask(2, 2) is None and resizes.new_plan(2) is None and resizes.ask(3, 2) is None


@pytest.mark.parametrize(
    ("num_pes", "words"), [(0, "a job has at least one"), (MAX_PES + 1, f"at most {MAX_PES}")]
)
def test_numbers_that_no_job_has_are_refused(num_pes: int, words: str) -> None:
    assert words in (Resizes().ask(num_pes, 2) or "")


def test_a_second_resize_is_refused_while_one_is_under_way() -> None:
    resizes = Resizes()
    assert resizes.ask(2, 4) is None
    assert "a resize to 2 PEs is under way" in (resizes.ask(3, 4) or "")
    resizes.carried_out()
    assert resizes.ask(3, 2) is None


def test_pes_that_drain_leave_together_and_one_stays() -> None:
    resizes = Resizes()
    assert resizes.drain(1, 3) is None and resizes.drain(0, 3) is None
    assert resizes.new_plan(3) == Plan(1, 1, (0, 1))
    assert "all other PEs leave" in (resizes.drain(2, 3) or "")
    assert "is under way" in (resizes.ask(3, 3) or "")


def test_a_drain_joins_a_resize_that_is_under_way() -> None:
    smaller = Resizes()
    assert smaller.ask(3, 4) is None and smaller.drain(0, 4) is None
    assert smaller.new_plan(4) == Plan(1, 3, (0,))
    larger = Resizes()
    assert larger.ask(4, 2) is None and larger.drain(0, 2) is None
    assert larger.new_plan(2) == Plan(1, 3, (0,))


def test_a_plan_is_made_anew_for_the_next_incarnation() -> None:
    resizes = Resizes()
    assert resizes.drain(3, 4) is None and resizes.new_plan(4) == Plan(1, 3, (3,))
    assert resizes.begin_again({0: 0, 2: 2, 3: 1}, 3)  # PE 1 was lost, and PE 3 has its number now
    assert resizes.plan(1) is None and resizes.is_draining(1)
    assert resizes.new_plan(3) == Plan(2, 2, (1,))
    assert resizes.begin_again({0: 0, 2: 1}, 2)  # the one that was to leave was lost
    assert resizes.new_plan(2) is None


def test_the_last_pe_stays_also_if_it_was_to_be_drained() -> None:
    resizes = Resizes()
    assert resizes.ask(1, 3) is None and resizes.drain(0, 3) is None
    assert not resizes.begin_again({0: 0}, 1)  # the plan from before the drain was carried out
    resizes.carried_out()
    assert resizes.new_plan(1) is None and resizes.ask(2, 1) is None


def test_few_pes_get_another_number() -> None:
    assert new_places(4, {1}, 4) == {0: 0, 2: 2, 3: 3}
    assert new_places(4, {1}, 3) == {0: 0, 2: 2, 3: 1}
    assert new_places(4, {0, 3}, 2) == {1: 1, 2: 0}
    assert new_places(2, set(), 5) == {0: 0, 1: 1}
    assert new_places(4, {2, 3}, 2) == {0: 0, 1: 1}


def test_a_drain_needs_a_job_that_goes_on() -> None:
    assert recovery_of({}) is None and recovery_of({"WEFT_ON_LOSS": "end"}) is None
    for on_loss in ("restart", "shrink"):
        made = recovery_of({"WEFT_ON_LOSS": on_loss, "WEFT_DRAIN_ON": "SIGTERM"})
        assert made is not None and made.shrinks == (on_loss == "shrink")
    with pytest.raises(UsageError, match="--drain-on needs"):
        recovery_of({"WEFT_DRAIN_ON": "SIGTERM"})


# --- with the launcher


def numbers(judge: Judge) -> list[tuple[int, int]]:
    """The number and the process of each PE."""
    return [(pe.number, pe.pid) for pe in judge.pes]


def test_a_job_that_shrinks_goes_on_without_the_lost_pe_until_none_is_left() -> None:
    judge = Judge(num_pes=3, shrinks=True)
    judge.die(0, KILLED)
    judge.settle()
    assert numbers(judge) == [(0, 3), (1, 2)] and judge.service.num_pes == 2
    assert "the job begins again with 2 PEs (recovery 1)" in judge.said[-1]
    judge.die(1, KILLED)
    judge.settle()
    assert numbers(judge) == [(0, 3)] and "with 1 PE (recovery 2)" in judge.said[-1]
    judge.die(0, KILLED)
    judge.settle()
    assert judge.said[-1].endswith("no PE is left") and judge.exit_code == 137


def test_a_pe_that_reads_its_state_is_waited_for_also_after_a_second_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(recovery.time, "monotonic", lambda: now)
    judge = Judge(num_pes=3)
    judge.service.busy = [0, 2]
    judge.service.missing = [0, 1]
    judge.die(0, KILLED)
    judge.settle()
    assert judge.name_late_pes() == [] and "begins again" in judge.said[-1]
    now += recovery.LEAVE_S
    assert judge.name_late_pes() == [2]
    assert judge.said[-1].startswith("the job waits for PE 0 (pid 1000), PE 1 (pid 2): ")
    said = list(judge.said)
    now += recovery.LEAVE_S
    judge.name_late_pes()
    assert judge.said == said


def test_a_resize_is_carried_out_when_the_pes_have_protected_for_it() -> None:
    judge = Judge(num_pes=3)
    assert judge.asked_for_resize(None, 2) is None and judge.service.plans == [(1, 2, (2,))]
    judge.carry_out(0)  # a state that was protected before the plan came
    judge.carry_out(7)
    assert judge.service.begun == []
    leaver = judge.pes[2]
    judge.carry_out(1)
    assert judge.service.begun == [([], 1)] and judge.service.left == [2] and len(judge.pes) == 2
    judge.end_leaver(leaver)
    assert judge.said == ["the job goes from 3 to 2 PEs; PE 2 leaves", "PE 2 (pid 3) has left the job"]
    assert judge.asked_for_resize(None, 5) is None and judge.service.plans[-1] == (2, 5, ())
    judge.carry_out(2)
    assert [pe.pid for pe in judge.pes] == [1, 2, 1_002, 1_003, 1_004]


def test_what_cannot_be_restored_withdraws_the_plan() -> None:
    judge = Judge()
    assert judge.asked_for_resize(None, 3) is None
    judge.cannot_resize(1, "it has a group")
    assert judge.service.plans == [(1, 3, ()), (0, 0, ())]
    assert judge.said == ["the job keeps its 2 PEs: it has a group"]
    assert judge.asked_for_resize(None, 3) is None


def test_a_pe_that_drains_leaves_and_the_last_one_takes_its_number() -> None:
    judge = Judge(num_pes=3)
    assert judge.asked_for_resize(judge.pes[0], 0) is None and judge.service.plans == [(1, 2, (0,))]
    assert judge.asked_for_resize(judge.pes[0], 0) is None and len(judge.service.plans) == 1
    judge.carry_out(1)
    assert numbers(judge) == [(0, 3), (1, 2)]


def test_a_loss_makes_the_plan_anew() -> None:
    judge = Judge(num_pes=3)
    assert judge.asked_for_resize(None, 1) is None
    judge.die(1, KILLED)
    judge.settle()
    judge.carry_out(1)  # of PE 0, sent before it was told
    assert judge.service.begun == [([1], 1)] and len(judge.pes) == 3
    judge.offer_plan()
    assert judge.service.plans == [(1, 1, (1, 2)), (2, 1, (1, 2))]


def test_a_resize_during_a_recovery_waits_until_all_pes_are_back() -> None:
    judge = Judge(num_pes=3)
    judge.die(1, KILLED)
    judge.settle()
    judge.service.is_complete = False
    assert judge.asked_for_resize(None, 2) is None and judge.service.plans == []
    judge.service.is_complete = True
    judge.offer_plan()
    assert judge.service.plans == [(1, 2, (2,))]


def test_a_leaver_whose_plan_is_carried_out_while_its_loss_is_judged_is_no_loss() -> None:
    judge = Judge(on_read=lambda judge: judge.carry_out(1), num_pes=3, shrinks=True)
    assert judge.asked_for_resize(None, 2) is None
    judge.die(2, KILLED)
    judge.settle()
    assert (
        judge.service.begun == [([], 1)] and judge.service.left == [2] and numbers(judge) == [(0, 1), (1, 2)]
    )
    assert "while it left the job, which goes on" in judge.said[-1]


def test_an_abort_from_before_a_resize_is_dropped() -> None:
    judge = Judge()
    assert judge.asked_for_resize(None, 1) is None
    judge.abort(0)
    judge.settle()
    judge.carry_out(1)
    judge.settle()
    assert judge.exit_code == 0 and judge._recovery is not None and judge._recovery.deadlines[2:] == []


def test_a_leaver_that_does_not_end_is_killed_once() -> None:
    judge = Judge()
    assert judge.asked_for_resize(None, 1) is None
    judge.carry_out(1)
    for _ in range(2):
        judge.kill_late_leavers(math.inf)
    assert [sentence for sentence in judge.said if "killing it" in sentence] == [
        "PE 1 (pid 2) has not ended within 30 s after it left the job; killing it"
    ]


def test_a_plan_for_which_pes_have_protected_is_withdrawn_if_the_job_ends() -> None:
    judge = Judge()
    assert judge.asked_for_resize(None, 1) is None
    judge.pass_on(signal.SIGINT)
    judge.carry_out(1)
    assert judge.service.plans[-1] == (0, 0, ()) and judge.service.begun == []


def test_a_job_of_several_programs_does_not_drain() -> None:
    judge = Judge()
    judge.has_several_programs()
    assert judge.asked_for_resize(judge.pes[1], 0) is None and judge.service.plans == []
    assert "cannot be drained: the job has several programs" in judge.said[-1]


def test_a_leaver_that_is_killed_is_no_loss() -> None:
    judge = Judge()
    assert judge.asked_for_resize(None, 1) is None
    leaver = judge.pes[1]
    judge.die(1, KILLED)  # reaped, and not judged yet
    judge.carry_out(1)
    judge.settle()
    assert judge.service.begun == [([], 1)] and leaver not in judge.pes
    assert "while it left the job, which goes on" in judge.said[-1]


def test_jobs_that_cannot_begin_again_are_refused_in_words() -> None:
    judge = Judge()
    judge.service.can_begin_again = False
    assert "weft.pgas.run" in (judge.asked_for_resize(None, 3) or "")
    judge.service.can_begin_again = True  # no PE has joined yet
    judge.service.is_complete = False
    assert judge.asked_for_resize(None, 3) is None
    judge.service.can_begin_again = False
    judge.service.is_complete = True
    judge.offer_plan()
    assert judge.service.plans == [] and "weft.pgas.run" in judge.said[-1]
