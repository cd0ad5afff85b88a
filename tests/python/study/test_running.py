"""The trials of a study: their order, what is counted, what goes wrong, resuming."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from weft_bench.errors import BenchError
from weft_bench.launches import Launches, Stopped
from weft_bench.study.plan import Group, Study
from weft_bench.study.running import label_of, order_of, read_time, run_study


def one_group(study: Study) -> Study:
    return dataclasses.replace(study, groups=study.groups[:1])


class Log:
    """A launch that only notes what was asked for; the trial number `ends_at` ends the study."""

    def __init__(self, ends_at: int = -1) -> None:
        self.labels: list[str] = []
        self.ends_at = ends_at

    def __call__(self, group, variant):
        if len(self.labels) == self.ends_at:
            raise Stopped("ended by SIGINT")
        self.labels.append(label_of(group, variant))
        return 1.0 + len(self.labels), {}


def test_the_order_is_random_and_the_seed_decides_it(make_study) -> None:
    first, second = make_study().groups
    order = order_of(first, 20, seed=3)
    assert Counter(order) == Counter((v, n) for v in first.variants for n in range(20))
    assert order == order_of(first, 20, seed=3)
    assert order != order_of(first, 20, seed=4)
    assert order != order_of(second, 20, seed=3)
    names = [variant.name for variant, _ in order]
    assert names != sorted(names)
    assert names != [v.name for v in first.variants] * 20


def test_every_variant_warms_up_and_is_run_so_often(make_study, open_file, programs) -> None:
    study, log = make_study(trials=4, warmup=2), Log()
    file = open_file(study)
    ends = []
    outcome = run_study(
        study, file, programs, Launches(), log, when_group_ends=lambda: ends.append(len(file.trials))
    )
    assert (outcome.absent, outcome.failed, outcome.stopped) == ({}, {}, "")
    assert len(log.labels) == study.launches == 2 * 3 * (4 + 2)
    assert set(Counter(log.labels[:6]).values()) == {2}, "the warm-up of all variants is first"
    assert ends == [12, 24]
    for group in study.groups:
        for variant in group.variants:
            assert len(file.values(group.name, variant.name)) == 4


def test_a_study_goes_on_where_it_was_ended(make_study, open_file, programs) -> None:
    study = make_study()
    whole = Log()
    all_trials = open_file(study)
    run_study(study, all_trials, programs, Launches(), whole)
    expected = [trial.key for trial in all_trials.trials]
    all_trials.path.unlink()

    made = []
    for ends_at in (10, 7, 0, 100):  # 3 warm-up launches each, but the last of the first group
        file = open_file(study)
        before = len(file.trials)
        outcome = run_study(study, file, programs, Launches(), Log(ends_at))
        assert bool(outcome.stopped) == (ends_at < 100)
        made.append(len(file.trials) - before)
    assert made == [7, 4, 0, 19]
    assert [trial.key for trial in open_file(study).trials] == expected, "in the same order as at once"

    log = Log()
    run_study(study, open_file(study), programs, Launches(), log)
    assert log.labels == [], "nothing is left to do"


def test_real_programs_are_launched_and_read(make_study, open_file, programs) -> None:
    study = make_study(trials=2)
    file = open_file(study)
    outcome = run_study(study, file, programs, Launches())
    assert not outcome.failed
    assert file.values("strong, 2 PEs", "Weft, ODF 1") == [2.5, 2.5]
    assert file.trials[0].fields == {"metric": "time_s", "verified": True, "odf": 3}


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("broken", "ended with status 1.*it broke"),
        ("silent", "printed no time_s"),
        ("wrong", "has found its result wrong"),
        ("0", "printed 0.0 as its time"),
        ("nan", "printed nan as its time"),
    ],
)
def test_a_variant_that_fails_is_run_no_further(make_study, open_file, programs, argument, told) -> None:
    study = one_group(make_study(trials=2))
    variants = list(study.groups[0].variants)
    variants[1] = dataclasses.replace(variants[1], options=(argument,))
    study = dataclasses.replace(
        study, groups=(dataclasses.replace(study.groups[0], variants=tuple(variants)),)
    )
    file = open_file(study)
    launches = Launches()
    outcome = run_study(study, file, programs, launches)
    ((label, why),) = outcome.failed.items()
    assert label == "strong, 1 PE: Weft, ODF 1"
    with pytest.raises(BenchError, match=f"(?s){told}"):
        raise BenchError(why)
    assert sorted({trial.variant for trial in file.trials}) == ["Weft, ODF 8, LB", "mpi4py"]
    assert len(file.trials) == 4


def test_programs_of_a_group_must_agree_on_the_result(make_study, open_file, programs) -> None:
    study = make_study(trials=2)
    file = open_file(study)

    def launch(group, variant):
        return 1.0, {"checksum": "bad" if variant.name == "Weft, ODF 1" and group.pes == 2 else "good"}

    # Seed 7 begins with another variant.
    outcome = run_study(study, file, programs, Launches(), launch)
    label = "strong, 2 PEs: Weft, ODF 1"
    why = f"{label} has the checksum 'bad', and the others of its group have 'good'"
    assert outcome.failed == {label: why}
    assert len(file.trials) == 6 + 4


def test_an_absent_variant_is_told_and_the_others_go_on(make_study, open_file, programs, direct) -> None:
    missing = direct("charm4py", "missing", "fake.py", ("1.0",))
    study = make_study(trials=1)
    group = study.groups[0]
    study = dataclasses.replace(
        study, groups=(dataclasses.replace(group, variants=(*group.variants, missing)),)
    )
    file = open_file(study)
    outcome = run_study(study, file, programs, Launches(), Log())
    assert outcome.absent == {"strong, 1 PE: charm4py": "install it"}
    assert len(file.trials) == 3


def test_the_time_is_in_the_last_line_that_has_one() -> None:
    first, last = '{"metric": "time_s", "value": 1}', '{"metric": "time_s", "value": 2, "pes": 4}'
    output = "\n".join(["a banner", first, last, '{"metric": "rate"}', "end"])
    assert read_time(output, "it") == (2.0, {"metric": "time_s", "pes": 4})
    coloured = '\x1b[0mtime 2 s\n\x1b[0m{"metric": "time_s", "value": 2}\x1b[0m\x1b[0m\n\x1b[0m\n'
    assert read_time(coloured, "it") == (2.0, {"metric": "time_s"})
    for value in ("true", '"1"', "null", "-1", "Infinity"):
        with pytest.raises(BenchError, match="as its time"):
            read_time(f'{{"metric": "time_s", "value": {value}}}', "it")


def test_a_group_compares_with_its_first_variant(make_study) -> None:
    group: Group = make_study().groups[0]
    assert group.variant("Weft, ODF 1") is group.variants[1]
    assert group.variant("none") is None
