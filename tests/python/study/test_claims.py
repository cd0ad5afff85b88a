"""Published claims are judged by code, from the trials: each verdict, with its reason."""

from __future__ import annotations

import dataclasses

import pytest

from weft_bench.study.claims import (
    CLAIMS,
    NOT_REPRODUCED,
    OUT_OF_REACH,
    REPRODUCED,
    Claim,
    balanced,
    judge,
    named,
    number_of_pes,
    weft_with_odf,
    weft_without_odf,
)
from weft_bench.study.plan import Group, Variant

AT_LEAST = Claim("fake", "a text", "a source", named("mpi4py"), balanced("weft"), 1.5, at_least=True)
AT_MOST = Claim("fake", "a text", "a source", weft_without_odf, named("mpi4py"), 1.05, at_least=False)


def values_of(times: dict[str, list[float]], group: str = "strong, 2 PEs"):
    return lambda name, variant: 5 * times.get(variant, []) if name == group else []


def verdict_of(claim: Claim, study, times: dict[str, list[float]], group: str = "strong, 2 PEs"):
    (verdict,) = judge(study, values_of(times, group), (claim,))
    return verdict


@pytest.mark.parametrize(
    ("mpi4py", "balanced_weft", "verdict", "part"),
    [
        ([2.0, 2.1, 2.2], [1.0, 1.1], REPRODUCED, "mpi4py / Weft, ODF 8, LB = 2.000 (1.9"),
        ([1.0, 1.1], [1.0, 1.1], NOT_REPRODUCED, "the limit is 1.5"),
        ([1.0, 2.0, 2.2], [1.0, 1.2], NOT_REPRODUCED, "the interval contains the limit 1.5"),
        ([], [1.0], OUT_OF_REACH, "not both measured"),
        ([1.0], [], OUT_OF_REACH, "not both measured"),
    ],
)
def test_a_ratio_that_is_to_be_large(make_study, mpi4py, balanced_weft, verdict, part) -> None:
    found = verdict_of(AT_LEAST, make_study(), {"mpi4py": mpi4py, "Weft, ODF 8, LB": balanced_weft})
    assert found.verdict == verdict
    assert part in found.why
    assert (found.ratio is None) == (part == "not both measured")


@pytest.mark.parametrize(
    ("weft", "verdict"),
    [
        ([1.0, 1.04], REPRODUCED),
        ([0.5, 0.6], REPRODUCED),
        ([1.04, 1.06], NOT_REPRODUCED),
        ([1.2, 1.3], NOT_REPRODUCED),
    ],
)
def test_a_ratio_that_is_to_be_small(make_study, weft, verdict) -> None:
    times = {"mpi4py": [1.0], "Weft, ODF 1": weft}
    assert verdict_of(AT_MOST, make_study(), times).verdict == verdict


def test_what_the_pes_do_not_permit_is_out_of_reach(make_study) -> None:
    claim = dataclasses.replace(AT_LEAST, limit=2.6, limit_on=number_of_pes)
    study = make_study()
    found = verdict_of(claim, study, {"mpi4py": [1.9], "Weft, ODF 8, LB": [1.0]})
    assert (found.verdict, found.why.partition("; ")[2]) == (OUT_OF_REACH, "2 PEs permit at most 2.0")
    assert found.ratio is not None and found.ratio.estimate == pytest.approx(1.9)
    # More than should be possible is no reason to say that it is not.
    assert verdict_of(claim, study, {"mpi4py": [2.7], "Weft, ODF 8, LB": [1.0]}).verdict == REPRODUCED
    four = dataclasses.replace(study.groups[1], name="strong, 4 PEs", pes=4)
    study = dataclasses.replace(study, groups=(*study.groups, four))
    found = verdict_of(claim, study, {"mpi4py": [1.9], "Weft, ODF 8, LB": [1.0]}, "strong, 4 PEs")
    assert found.verdict == NOT_REPRODUCED


def test_the_group_with_the_most_pes_that_has_both_counts(make_study) -> None:
    times = {
        ("strong, 1 PE", "mpi4py"): [2.0] * 5,
        ("strong, 1 PE", "Weft, ODF 8, LB"): [1.0] * 5,
        ("strong, 2 PEs", "mpi4py"): [1.0] * 5,
    }
    (found,) = judge(make_study(), lambda group, variant: times.get((group, variant), []), (AT_LEAST,))
    assert (found.verdict, found.why.endswith("strong, 1 PE")) == (REPRODUCED, True)
    times["strong, 2 PEs", "Weft, ODF 8, LB"] = [1.0] * 5
    (found,) = judge(make_study(), lambda group, variant: times.get((group, variant), []), (AT_LEAST,))
    assert (found.verdict, "strong, 2 PEs" in found.why) == (NOT_REPRODUCED, True)


def test_a_claim_about_one_scaling_looks_at_no_other(make_study) -> None:
    times = {"mpi4py": [2.0], "Weft, ODF 8, LB": [1.0]}
    assert (
        verdict_of(dataclasses.replace(AT_LEAST, scaling="strong"), make_study(), times).verdict == REPRODUCED
    )
    assert (
        verdict_of(dataclasses.replace(AT_LEAST, scaling="weak"), make_study(), times).verdict == OUT_OF_REACH
    )


def test_variants_are_chosen_by_what_they_are() -> None:
    names = {
        "mpi4py": "mpi4py",
        "Weft, ODF 1": "weft",
        "Weft, ODF 8": "weft",
        "Weft, ODF 8, LB": "weft",
        "charm4py, ODF 8, LB": "charm4py",
    }
    group = Group("g", 2, tuple(Variant(name, system, "a.py") for name, system in names.items()))
    chosen = [f(group) for f in (weft_without_odf, weft_with_odf, balanced("weft"), balanced("charm4py"))]
    assert [variant.name for variant in chosen if variant] == list(names)[1:]


def test_few_trials_show_nothing(make_study) -> None:
    times = {"mpi4py": [2.0] * 9, "Weft, ODF 8, LB": [1.0] * 4}
    (found,) = judge(make_study(), lambda group, variant: times.get(variant, []), (AT_LEAST,))
    assert (found.verdict, found.why.partition("; ")[2]) == (
        OUT_OF_REACH,
        "4 trials are too few, 5 are needed",
    )


def test_a_variant_that_has_failed_reproduces_nothing(make_study) -> None:
    def values(group, variant):
        return [2.0 if variant == "mpi4py" else 1.0] * 5

    for label, verdict in (
        ("strong, 2 PEs: Weft, ODF 8, LB", NOT_REPRODUCED),
        ("strong, 2 PEs: mpi4py", NOT_REPRODUCED),
        ("strong, 1 PE: mpi4py", REPRODUCED),  # the group with more PEs decides
        ("strong, 2 PEs: Weft, ODF 1", REPRODUCED),  # the claim is not about it
    ):
        (found,) = judge(make_study(), values, (AT_LEAST,), {label: "it broke"})
        assert found.verdict == verdict
        assert (found.why == f"{label} has failed") == (verdict == NOT_REPRODUCED)


def test_other_studies_are_not_judged(make_study) -> None:
    assert judge(make_study(), values_of({})) == []
    assert {claim.study for claim in CLAIMS} == {"stencil2d", "pic"}
