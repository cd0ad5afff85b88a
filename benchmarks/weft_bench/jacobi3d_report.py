"""What people see of `weft bench jacobi3d`: a table, and bars that show where the time went."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from weft_bench.errors import BenchError
from weft_bench.jacobi3d import PARTS, Case, Outcome
from weft_bench.plot import new_figure, save
from weft_bench.report import runs_label, value_label

_SPLIT = ("compute", "pack", "communication")
_COLOURS = {"compute": "#4477aa", "pack": "#ccbb44", "communication": "#ee6677"}
_LETTERS_PER_INCH = 13  # of the title


def table(outcome: Outcome) -> Table:
    """A row per case: milliseconds of an iteration, efficiency, what staging costs."""
    runs = runs_label(outcome.records.values())
    result = Table(title=f"Jacobi3D, ms per iteration: median of {runs} runs")
    for heading in ("case", "points"):
        result.add_column(heading)
    for heading in (*PARTS, "efficiency", "staged / not staged"):
        result.add_column(heading, justify="right", no_wrap=True)
    for case in outcome.cases:
        efficiency, overhead = outcome.efficiency(case), outcome.overhead_of_staging(case)
        result.add_row(
            escape(case.label),
            " x ".join(map(str, case.points)),
            *(value_label(1e3 * outcome.seconds(case, part)) for part in PARTS),
            "-" if efficiency is None else f"{efficiency:.0%}",
            "-" if overhead is None else f"{overhead:.1f} x",
        )
    return result


def write_plot(path: Path, outcome: Outcome) -> None:
    """Draw a panel per scaling and number of PEs into `path`, a PNG; a bar per case, split into its parts.

    Raises:
        BenchError: nothing was measured, or there is no matplotlib.
    """
    if not outcome.records:
        raise BenchError(f"nothing was measured, so {path} was not drawn")
    scalings = list(dict.fromkeys(case.scaling for case in outcome.cases))
    pes = sorted({case.pes for case in outcome.cases})
    bars = max(len(_panel(outcome, scaling, number)) for scaling in scalings for number in pes)
    size = (2.0 + len(pes) * max(2.5, 0.35 * bars), 1.2 + 4.2 * len(scalings))
    figure = new_figure(*size)
    grid = figure.subplots(len(scalings), len(pes), squeeze=False, sharey="row")
    for row, scaling in enumerate(scalings):
        for column, number in enumerate(pes):
            _draw(grid[row][column], outcome, _panel(outcome, scaling, number))
            grid[row][column].set_title(
                f"{scaling} scaling, {number} PE{'s' if number > 1 else ''}", fontsize=9
            )
        grid[row][0].set_ylabel("ms per iteration")
    grid[0][0].legend(fontsize=8)
    first = next(iter(outcome.records.values()))
    about = textwrap.fill(f"{first.host}; {first.date}", width=int(_LETTERS_PER_INCH * size[0]))
    figure.suptitle(f"Jacobi3D, {first.memory} memory\n{about}", fontsize=9)
    save(figure, path)


def _panel(outcome: Outcome, scaling: str, pes: int) -> list[Case]:
    return [case for case in outcome.cases if (case.scaling, case.pes) == (scaling, pes)]


def _draw(axes: Any, outcome: Outcome, shown: Sequence[Case]) -> None:
    bottom = [0.0] * len(shown)
    for part in _SPLIT:
        heights = [1e3 * outcome.seconds(case, part) for case in shown]
        axes.bar(range(len(shown)), heights, bottom=bottom, color=_COLOURS[part], label=part)
        bottom = [below + height for below, height in zip(bottom, heights, strict=True)]
    axes.set_xticks(range(len(shown)), [_tick(case) for case in shown], rotation=90, fontsize=7)
    axes.grid(True, axis="y", alpha=0.4)


def _tick(case: Case) -> str:
    words = ({"cpp": "C++", "python": "Python"}[case.language], case.model, case.way, f"ODF {case.odf}")
    return " ".join(word for word in words if word)
