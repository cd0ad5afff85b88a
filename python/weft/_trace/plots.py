"""The plot of a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft._trace.reading import Trace, TraceError
from weft._trace.summary import busy_share, grains_of, methods_of

_BINS = 400
_MOST_METHODS = 8


def draw(trace: Trace, file: Path) -> None:
    """Draws how busy each PE was over the time of the job, the times of entry methods, and their grain sizes.

    Raises:
        TraceError: matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TraceError("--plot needs matplotlib: pip install matplotlib") from error
    height = 4.5 + 0.3 * len(trace.pes)
    figure = Figure(figsize=(10, height), layout="constrained")
    axes = figure.subplot_mosaic(
        [["busy", "busy"], ["methods", "grains"]], height_ratios=[height - 3, 3], width_ratios=[1, 1]
    )
    _draw_busy(trace, figure, axes["busy"])
    _draw_methods(trace, axes["methods"])
    _draw_grains(trace, axes["grains"])
    figure.savefig(file)


def _draw_busy(trace: Trace, figure: Any, axes: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    begin_ns = min(one.begin_ns for one in trace.pes.values())
    end_ns = max(one.end_ns for one in trace.pes.values())
    rows = [busy_share(trace.pes[pe], _BINS, begin_ns, end_ns) for pe in sorted(trace.pes)]
    extent = (0, (end_ns - begin_ns) / 1e9, len(rows) - 0.5, -0.5)
    image = axes.imshow(rows, aspect="auto", extent=extent, vmin=0, vmax=1, interpolation="nearest")
    axes.set(xlabel="time (s)", ylabel="PE", title="share of the time in entry methods")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.colorbar(image)


def _draw_methods(trace: Trace, axes: Any) -> None:
    methods = list(methods_of(trace).items())[:_MOST_METHODS]
    names = [name for name, _ in methods]
    axes.barh(names, [method.time_ns / 1e9 for _, method in methods])
    axes.invert_yaxis()
    axes.set(xlabel="time (s)", title="entry methods, on all PEs")


def _draw_grains(trace: Trace, axes: Any) -> None:
    grains = grains_of(trace)
    # A grain of number n took from 2 ** (n - 1) ns to less than 2 ** n ns.
    edges = [2.0 ** (grain - 1) / 1e3 for grain in grains]
    axes.bar(edges, list(grains.values()), width=edges, align="edge", edgecolor="white")
    axes.set_xscale("log", base=10)
    axes.set(xlabel="time of a part (us)", title="grain sizes: number of parts")
