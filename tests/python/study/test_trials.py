"""The file of trials: kept at once, read again, and refused if it belongs to something else."""

from __future__ import annotations

import dataclasses
import json

import pytest

from weft_bench.errors import BenchError
from weft_bench.study.trials import Trial


def trial(number: int, value: float = 1.0, variant: str = "mpi4py", group: str = "strong, 1 PE") -> Trial:
    return Trial(group, variant, number, value, {"odf": 1}, "2026-01-02T03:04:05Z")


def test_trials_are_read_again(make_study, open_file) -> None:
    study = make_study()
    file = open_file(study)
    for number in (1, 0):
        file.add(trial(number, 1.0 + number))
    again = open_file(study)
    assert again.trials == file.trials == [trial(1, 2.0), trial(0, 1.0)]
    assert again.values("strong, 1 PE", "mpi4py") == [1.0, 2.0]
    assert again.values("strong, 2 PEs", "mpi4py") == []
    lines = [json.loads(line) for line in file.path.read_text().splitlines()]
    assert lines[0]["study"] == "fake" and lines[0]["seed"] == 7
    assert lines[0]["groups"][0]["variants"][0]["options"] == ["2.0"]
    assert lines[2]["value"] == 1.0


def test_means_of_what_programs_print(make_study, open_file) -> None:
    file = open_file(make_study())
    for number, odf in ((0, 2), (1, 5.0)):
        file.add(dataclasses.replace(trial(number), fields={"odf": odf, "name": "x"}))
    assert file.mean_of("strong, 1 PE", "mpi4py", "odf") == 3.5
    assert file.mean_of("strong, 1 PE", "mpi4py", "name") is None
    assert file.mean_of("strong, 2 PEs", "mpi4py", "odf") is None
    file.add(dataclasses.replace(trial(2), fields={}))
    assert file.mean_of("strong, 1 PE", "mpi4py", "odf") is None


def test_the_seed_of_the_file_is_kept_if_none_is_given(make_study, open_file) -> None:
    assert open_file(make_study(), seed=5).header.seed == 5
    assert open_file(make_study()).header.seed == 5
    with pytest.raises(BenchError, match="seed is 5 there and 6 here"):
        open_file(make_study(), seed=6)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"trials": 6}, "trials is 5 there and 6 here"),
        ({"warmup": 0}, "warmup is 1 there and 0 here"),
        ({"name": "other"}, "study is 'fake' there and 'other' here"),
        ({"groups": ()}, "it has 2 groups, and here are 0"),
    ],
)
def test_other_settings_are_refused(make_study, open_file, changes, told) -> None:
    open_file(make_study())
    with pytest.raises(BenchError, match=told) as refused:
        open_file(make_study(**changes))
    assert "--fresh" in str(refused.value)


def test_other_options_of_a_program_are_refused(make_study, open_file) -> None:
    study = make_study()
    open_file(study)
    first = study.groups[0]
    variants = (dataclasses.replace(first.variants[0], options=("9.0",)), *first.variants[1:])
    changed = make_study(groups=(dataclasses.replace(first, variants=variants), study.groups[1]))
    with pytest.raises(BenchError, match=r'a group is .*"2\.0".* there and .*"9\.0".* here'):
        open_file(changed)


@pytest.mark.parametrize("field", ["git", "host"])
def test_another_commit_or_machine_is_refused(make_study, open_file, field) -> None:
    where = open_file(make_study()).header.where
    with pytest.raises(BenchError, match=f"{field} is .* there and 'other' here"):
        open_file(make_study(), where=dataclasses.replace(where, **{field: "other"}))
    later = dataclasses.replace(where, date="2027-01-01T00:00:00Z")
    resumed = open_file(make_study(), where=later).header
    assert (resumed.seed, resumed.where.date) == (7, where.date), "the report says when the study was begun"


def test_a_line_that_was_cut_off_is_dropped(make_study, open_file) -> None:
    file = open_file(make_study())
    file.add(trial(0))
    with file.path.open("a") as out:
        out.write('{"group": "strong, 1 PE", "varia')
    again = open_file(make_study())
    assert again.trials == [trial(0)]
    again.add(trial(1))
    assert open_file(make_study()).trials == [trial(0), trial(1)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no header", "no file of trials"),
        ("[1]\n", "line 1: no JSON object"),
        ("{}\n", "has trials of another study"),
    ],
)
def test_other_files_are_refused(make_study, open_file, tmp_path, text, told) -> None:
    (tmp_path / "trials.jsonl").write_text(text)
    with pytest.raises(BenchError, match=told):
        open_file(make_study())
    assert (tmp_path / "trials.jsonl").read_text() == text


@pytest.mark.parametrize(
    "line",
    [
        "nothing",
        "{}",
        json.dumps(dataclasses.asdict(trial(0)) | {"more": 1}),
        json.dumps(dataclasses.asdict(trial(0)) | {"value": -1.0}),
        json.dumps(dataclasses.asdict(trial(0)) | {"value": "1.0"}),
        json.dumps(dataclasses.asdict(trial(0)) | {"value": None}),
    ],
)
def test_a_line_that_is_no_trial_is_refused(make_study, open_file, line) -> None:
    file = open_file(make_study())
    with file.path.open("a") as out:
        out.write(line + "\n")
    with pytest.raises(BenchError, match="line 2: "):
        open_file(make_study())
