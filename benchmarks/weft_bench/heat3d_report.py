"""What people see of `weft bench heat3d`: a table, and histograms side by side with their medians marked."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from weft_bench.errors import BenchError
from weft_bench.heat3d import FIGURES, Case, Outcome, edges, histogram
from weft_bench.plot import new_figure, save
from weft_bench.report import runs_label, value_label

_NAMES = {"channel": "two-sided (channel)", "pgas": "one-sided (pgas)"}
_COLOURS = {"channel": "#4477aa", "pgas": "#ee6677"}
_WIDTH_INCHES = 10.0
_LETTERS_PER_INCH = 13  # of the title


def table(outcome: Outcome) -> Table:
    """A row per case: microseconds of two steps, and the distances between quantiles."""
    runs = runs_label(outcome.records.values())
    result = Table(title=f"Heat conduction in 3D, us per two steps: median of {runs} runs")
    for heading in ("points", "exchange", "PEs", "ODF"):
        result.add_column(heading)
    for heading in FIGURES:
        result.add_column(heading, justify="right", no_wrap=True)
    for case in outcome.runs:
        result.add_row(
            f"{case.size}^3",
            _NAMES[case.exchange],
            str(case.pes),
            str(case.odf),
            *(value_label(1e6 * outcome.records[case, figure].median) for figure in FIGURES),
        )
    return result


def comparison(outcome: Outcome) -> list[str]:
    """A line per size: what one-sided is to two-sided, and in how many turns it was below."""
    lines = []
    for two, one in outcome.pairs:
        parts = []
        for figure in FIGURES:
            base = outcome.records[two, figure].median
            ratio = f"{outcome.records[one, figure].median / base:.2f}" if base > 0 else "-"
            wins, turns = outcome.one_sided_wins((two, one), figure)
            parts.append(f"{figure} x {ratio} (below in {wins} of {turns} turns)")
        lines.append(f"{two.size}^3 points, one-sided to two-sided: {'; '.join(parts)}")
    return lines


def distances(outcome: Outcome) -> list[str]:
    """How far the cores were from one another, and how many runs that leaves out."""
    kept = [one for runs in outcome.runs.values() for one in runs]
    if not kept or kept[0].distance_ns is None:
        return []
    lines = [f"a cache line between the cores takes {kept[0].distance_ns:.0f} ns"]
    if others := sum(map(len, outcome.turns.values())) - len(kept):
        lines.append(f"the figures leave out {others} runs in which the cores were at another distance")
    return lines


def write_plot(path: Path, outcome: Outcome) -> None:
    """Draw a row of two histograms per size into `path`, a PNG.

    Raises:
        BenchError: nothing was measured, or there is no matplotlib.
    """
    if not outcome.pairs:
        raise BenchError(f"nothing was measured with both exchanges, so {path} was not drawn")
    rows = len(outcome.pairs)
    figure = new_figure(_WIDTH_INCHES, 0.9 + 2.2 * rows)
    grid = figure.subplots(rows, 2, squeeze=False, sharex="row", sharey="row")
    for axes, pair in zip(grid, outcome.pairs, strict=True):
        bins = edges([outcome.runs[case] for case in pair])
        for part, case in zip(axes, pair, strict=True):
            _draw(part, outcome, case, bins)
        axes[0].set_ylabel("share of windows, %", fontsize=8)
    for part in grid[-1]:
        part.set_xlabel("us per two steps", fontsize=8)
    first = next(iter(outcome.records.values()))
    about = textwrap.fill(f"{first.host}; {first.date}", width=int(_LETTERS_PER_INCH * _WIDTH_INCHES))
    figure.suptitle(f"Heat conduction in 3D, {first.memory} memory\n{about}", fontsize=9)
    save(figure, path)


def _draw(axes: Any, outcome: Outcome, case: Case, bins: list[float]) -> None:
    runs = outcome.runs[case]
    counts = histogram(runs, bins)
    total = sum(len(one.windows_us) for one in runs)
    axes.stairs([100 * count / total for count in counts], bins, fill=True, color=_COLOURS[case.exchange])
    median = 1e6 * outcome.records[case, "median"].median
    axes.axvline(median, color="black", linestyle="--", linewidth=1, label=f"median {value_label(median)} us")
    beyond = 100 * (1 - sum(counts) / total)
    axes.set_title(
        f"{case.size}^3 points, {case.pes} PEs, {_NAMES[case.exchange]}; {beyond:.1f} % beyond the picture",
        fontsize=8,
    )
    axes.grid(True, axis="y", alpha=0.4)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=7)


def failures(outcome: Outcome) -> list[str]:
    """Marked up for a console."""
    return [f"failed: {escape(case.label)}: {escape(reason)}" for case, reason in outcome.failed.items()]
