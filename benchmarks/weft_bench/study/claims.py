"""Published claims, each judged by the trials of a study.

A claim is about a ratio of mean times of two variants of a group. It is judged by the ratio's bootstrapped
99 % interval in the group with the most PEs that has both:

- not reproduced: one of the two has failed in that group or in one with more PEs;
- reproduced: the whole interval is on the claimed side of the claimed limit;
- out of reach here: the limit is beyond what this number of PEs permits, or one of the two lacks trials;
- not reproduced: all else. If the interval contains the limit, the verdict says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection

from weft_bench.study.plan import Group, Study, Variant, label_of
from weft_bench.study.statistics import Interval, interval_of_ratio
from weft_bench.study.summary import FEWEST_TRIALS, Values

REPRODUCED, NOT_REPRODUCED, OUT_OF_REACH = "reproduced", "not reproduced", "out of reach here"

CLUSTER_2018 = "CharmPy: A Python Parallel Programming Model, CLUSTER 2018"
ESPM2_2021 = "Performance Evaluation of Python Parallel Programming Models: Charm4Py and mpi4py, ESPM2 2021"


@dataclasses.dataclass(frozen=True)
class Claim:
    """The mean time of `above` over that of `below` is at least or at most `limit`.

    `above` and `below` choose the variant of a group. `limit_on` gives the largest ratio that so many PEs
    permit; None if the number of PEs does not matter.
    """

    study: str
    text: str
    source: str
    above: Callable[[Group], Variant | None]
    below: Callable[[Group], Variant | None]
    limit: float
    at_least: bool
    scaling: str = ""
    limit_on: Callable[[int], float] | None = None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`ratio` is None if it was not measured. `why` explains, with the numbers."""

    claim: Claim
    verdict: str
    why: str
    ratio: Interval | None = None


def named(name: str) -> Callable[[Group], Variant | None]:
    """The variant of that name."""
    return lambda group: group.variant(name)


def weft_without_odf(group: Group) -> Variant | None:
    """Weft with one block per PE."""
    return next((v for v in group.variants if v.system == "weft" and v.name.endswith("ODF 1")), None)


def weft_with_odf(group: Group) -> Variant | None:
    """Weft with several blocks per PE, without load balancing."""
    return next(
        (v for v in group.variants if v.system == "weft" and not v.name.endswith(("ODF 1", "LB"))), None
    )


def balanced(system: str) -> Callable[[Group], Variant | None]:
    """That of `system` with overdecomposition and load balancing."""
    return lambda group: next(
        (v for v in group.variants if v.system == system and v.name.endswith(", LB")), None
    )


def number_of_pes(pes: int) -> float:
    """Balancing makes a run at most as many times faster as there are PEs: one PE had all the work before."""
    return float(pes)


_MPI4PY = named("mpi4py")
_A_FEW_PERCENT = 1.05

CLAIMS = (
    *(
        Claim(
            "stencil2d",
            f"a stencil in Python over chares takes at most a few percent (5 %) longer than over MPI, {how}",
            CLUSTER_2018,
            variant,
            _MPI4PY,
            _A_FEW_PERCENT,
            at_least=False,
            scaling=scaling,
        )
        for scaling in ("strong", "weak")
        for how, variant in (
            (f"{scaling} scaling, one block per PE", weft_without_odf),
            (f"{scaling} scaling, overdecomposed", weft_with_odf),
        )
    ),
    Claim(
        "pic",
        "imbalanced PIC: overdecomposition with load balancing is 2.6 x faster than mpi4py",
        ESPM2_2021,
        _MPI4PY,
        balanced("weft"),
        2.6,
        at_least=True,
        limit_on=number_of_pes,
    ),
    Claim(
        "pic",
        "imbalanced PIC: overdecomposition with load balancing is faster than mpi4py",
        ESPM2_2021,
        _MPI4PY,
        balanced("weft"),
        1.0,
        at_least=True,
    ),
    Claim(
        "pic",
        "imbalanced PIC: charm4py with overdecomposition and load balancing is faster than mpi4py",
        ESPM2_2021,
        _MPI4PY,
        balanced("charm4py"),
        1.0,
        at_least=True,
    ),
)


def judge(
    study: Study, values: Values, claims: tuple[Claim, ...] = CLAIMS, failed: Collection[str] = ()
) -> list[Verdict]:
    """All claims that the study is about. `failed` are labels, see plan.label_of()."""
    return [_judge(claim, study, values, failed) for claim in claims if claim.study == study.name]


def _judge(claim: Claim, study: Study, values: Values, failed: Collection[str]) -> Verdict:
    groups = [group for group in study.groups if claim.scaling in ("", group.scaling)]
    found = None
    for group in sorted(groups, key=lambda group: -group.pes):
        above, below = claim.above(group), claim.below(group)
        if above is None or below is None:
            continue
        for label in (label_of(group, above), label_of(group, below)):
            if label in failed:
                return Verdict(claim, NOT_REPRODUCED, f"{label} has failed")
        times = values(group.name, above.name), values(group.name, below.name)
        if all(times):
            found = group, above, below, times
            break
    if found is None:
        return Verdict(claim, OUT_OF_REACH, "the two that it compares were not both measured")
    group, above, below, times = found
    ratio = interval_of_ratio(*times)
    interval = f"{ratio.estimate:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
    measured = f"{above.name} / {below.name} = {interval}, {group.name}"
    trials = min(map(len, times))
    if trials < FEWEST_TRIALS:
        return Verdict(
            claim, OUT_OF_REACH, f"{measured}; {trials} trials are too few, {FEWEST_TRIALS} are needed", ratio
        )
    verdict, remark = _decide(claim, ratio, group.pes)
    return Verdict(claim, verdict, f"{measured}{remark}", ratio)


def _decide(claim: Claim, ratio: Interval, pes: int) -> tuple[str, str]:
    """The verdict and a remark."""
    if (ratio.low > claim.limit) if claim.at_least else (ratio.high < claim.limit):
        return REPRODUCED, ""
    if claim.at_least and claim.limit_on is not None and claim.limit > claim.limit_on(pes):
        return OUT_OF_REACH, f"; {pes} PEs permit at most {claim.limit_on(pes):.1f}"
    if ratio.low <= claim.limit <= ratio.high:
        return (
            NOT_REPRODUCED,
            f"; the interval contains the limit {claim.limit}, so more trials may decide it",
        )
    return NOT_REPRODUCED, f"; the limit is {claim.limit}"
