"""A picture of a study: of each group the mean of each variant, its interval, and the single trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft_bench.errors import BenchError
from weft_bench.plot import new_figure, save
from weft_bench.study.plan import Study
from weft_bench.study.summary import Row, Values
from weft_bench.study.trials import Header

_HEIGHT_INCHES = 5.0
_BAR_INCHES = 0.55


def write_plot(path: Path, study: Study, header: Header, rows: Sequence[Row], values: Values) -> None:
    """Draws into `path`, a PNG. Raises BenchError if nothing was measured or matplotlib is missing."""
    if not rows:
        raise BenchError(f"nothing was measured, so {path} was not drawn")
    variants = list(dict.fromkeys(row.variant for row in rows))
    groups = list(dict.fromkeys(row.group for row in rows))
    width = max(7.0, _BAR_INCHES * len(groups) * (len(variants) + 1))
    figure = new_figure(width, _HEIGHT_INCHES)
    axes = figure.add_subplot()
    for number, variant in enumerate(variants):
        own = [row for row in rows if row.variant == variant]
        places = [groups.index(row.group) * (len(variants) + 1.0) + number for row in own]
        means = [row.mean.estimate for row in own]
        below = [max(0.0, row.mean.estimate - row.mean.low) for row in own]
        above = [max(0.0, row.mean.high - row.mean.estimate) for row in own]
        axes.bar(places, means, width=0.85, yerr=[below, above], capsize=3, label=variant, alpha=0.8)
        for place, row in zip(places, own, strict=True):
            trials = values(row.group, variant)
            axes.plot([place] * len(trials), list(trials), ".", color="black", markersize=3, alpha=0.35)
    middle = (len(variants) - 1) / 2
    axes.set_xticks([n * (len(variants) + 1) + middle for n in range(len(groups))], groups)
    axes.set_ylabel("time between barriers, s")
    axes.set_ylim(bottom=0)
    axes.grid(True, axis="y", alpha=0.4)
    axes.legend(fontsize=8)
    axes.set_title(
        f"{study.name}: means with bootstrapped 99 % intervals, and trials\n"
        f"{header.where.host}; {header.where.date}",
        fontsize=9,
    )
    save(figure, path)
