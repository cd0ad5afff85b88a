"""A log-log picture of records: a line per series through the medians, a band from minimum to maximum.

Records of one buffer and of distinct buffers have a picture each, side by side, and so has each bench.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft_bench.errors import BenchError
from weft_bench.record import Record
from weft_bench.report import by_buffers, series_of, size_label, title_of
from weft_bench.system import Series

_SIZE_INCHES = (9.0, 5.5)
_DOTS_PER_INCH = 140
_MAX_TICKS = 12
_MOST_COLUMNS = 2
#: Colours that matplotlib has before it begins anew; then the marker changes.
_COLOURS = 10
_MARKERS = "os^D"
#: A list of more series would hide the lines. It stands beside the picture, which is wider by so much then.
_MOST_INSIDE = 8
_LIST_INCHES = 4.5
#: In a line of the title.
_TITLE_LETTERS = 110


def new_figure(width: float, height: float) -> Any:
    """An empty figure of matplotlib's, of that many inches. Raises BenchError if there is no matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BenchError("the picture needs matplotlib: pip install matplotlib") from error
    figure = Figure(figsize=(width, height), dpi=_DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a figure into `path`, a PNG, and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png")


def write_plot(path: Path, records: Sequence[Record]) -> None:
    """Draw records into `path`, a PNG; BenchError when there are none or no matplotlib.

    Each bench has a picture of its own in the file.
    """
    if not records:
        raise BenchError(f"nothing was measured, so {path} was not drawn")
    parts = [
        (buffers, part)
        for bench in dict.fromkeys(record.bench for record in records)
        for buffers, part in by_buffers(r for r in records if r.bench == bench).items()
    ]
    columns = min(len(parts), _MOST_COLUMNS)
    rows = -(-len(parts) // columns)
    width, height = _SIZE_INCHES
    if any(len(_series(part)) > _MOST_INSIDE for _, part in parts):
        width += _LIST_INCHES
    figure = new_figure(width * columns, height * rows)
    for number, (buffers, part) in enumerate(parts):
        _draw(figure.add_subplot(rows, columns, number + 1), part, buffers)
    save(figure, path)


def _series(records: Sequence[Record]) -> list[Series]:
    return list(dict.fromkeys(series_of(record) for record in records))


def _draw(axes: Any, records: Sequence[Record], buffers: str) -> None:
    all_series = _series(records)
    for number, series in enumerate(all_series):
        points = sorted((r for r in records if series_of(r) == series), key=lambda r: r.size_bytes)
        # A logarithmic axis has no place for zero bytes.
        sizes = [max(record.size_bytes, 0.5) for record in points]
        (line,) = axes.plot(
            sizes,
            [record.median for record in points],
            marker=_MARKERS[number // _COLOURS % len(_MARKERS)],
            markersize=3.5,
            linewidth=2.0 if series.system == "weft" else 1.2,
            linestyle="-" if series.system == "weft" else "--",
            label=series.label,
        )
        low, high = [record.min for record in points], [record.max for record in points]
        axes.fill_between(sizes, low, high, color=line.get_color(), alpha=0.12, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = sorted({record.size_bytes for record in records if record.size_bytes > 0})
    ticks = ticks[:: max(1, -(-len(ticks) // _MAX_TICKS))]
    axes.set_xticks(ticks, [size_label(size) for size in ticks])
    axes.set_xlabel("message size, bytes")
    axes.set_ylabel(title_of(records[0]))
    axes.grid(True, which="major", alpha=0.4)
    if len(all_series) > _MOST_INSIDE:
        axes.legend(fontsize=6, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    else:
        axes.legend(fontsize=8)
    first = records[0]
    what = ", ".join(part for part in (first.bench, f"{first.memory} memory", buffers) if part)
    about = textwrap.fill(f"{first.host}; {first.date}", width=_TITLE_LETTERS)
    axes.set_title(f"{what}, {first.pes} PEs\n{about}", fontsize=9)
