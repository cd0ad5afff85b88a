"""The trials of a study in numbers: the mean of each variant, and how it compares with its group's first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from weft_bench.study.plan import Group, Study
from weft_bench.study.statistics import Interval, UTest, interval_of_mean, interval_of_ratio, mann_whitney

#: Fewer trials show no difference at the 1 % level, whatever they are.
FEWEST_TRIALS = 5

Values = Callable[[str, str], Sequence[float]]
#: The mean of a field that programs print beside their time: of a group, a variant and a field.
Means = Callable[[str, str, str], float | None]
#: Parts of the time that some programs print, in seconds.
PARTS = ("compute_s", "balancing_s")


@dataclasses.dataclass(frozen=True)
class Row:
    """A variant. `ratio` is its mean time over that of the group's first variant; both were measured then."""

    group: str
    pes: int
    variant: str
    trials: int
    mean: Interval
    efficiency: float | None = None
    ratio: Interval | None = None
    test: UTest | None = None
    parts: tuple[float | None, ...] = (None,) * len(PARTS)


def no_means(group: str, variant: str, field: str) -> float | None:
    """For programs that print nothing beside their time."""
    return None


def rows_of(study: Study, values: Values, means: Means = no_means) -> list[Row]:
    """Of all variants with trials. `values` are the seconds of a group and a variant."""
    rows = []
    for group in study.groups:
        reference = list(values(group.name, group.variants[0].name))
        for variant in group.variants:
            own = list(values(group.name, variant.name))
            if not own:
                continue
            row = Row(
                group=group.name,
                pes=group.pes,
                variant=variant.name,
                trials=len(own),
                mean=interval_of_mean(own),
                efficiency=_efficiency(study, group, variant.name, values),
                parts=tuple(means(group.name, variant.name, part) for part in PARTS),
            )
            if variant is not group.variants[0] and reference:
                ratio, test = interval_of_ratio(own, reference), mann_whitney(own, reference)
                row = dataclasses.replace(row, ratio=ratio, test=test)
            rows.append(row)
    return rows


def _efficiency(study: Study, group: Group, variant: str, values: Values) -> float | None:
    """Of its scaling, from the same variant on one PE."""
    alone = [g for g in study.groups if g.scaling == group.scaling and g.pes == 1 and g.work > 0]
    if group.work == 0 or not alone:
        return None
    before, now = values(alone[0].name, variant), values(group.name, variant)
    if not before or not now:
        return None
    work_per_pe = group.work / alone[0].work / group.pes
    return work_per_pe * (sum(before) / len(before)) / (sum(now) / len(now))
