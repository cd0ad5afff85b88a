"""`weft trace FILE`: the summary of a trace as tables, as JSON and as a plot."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from weft._trace.reading import Trace, TraceError, read_trace
from weft._trace.summary import busy_share, critical_path, longest_waits, methods_of, times_of

_BINS = 400


def print_summary(file: Path, json_file: Path | None, plot: Path | None) -> int:
    """Prints it; returns the exit code."""
    try:
        trace = read_trace(file)
        if json_file is not None:
            json_file.write_text(json.dumps(as_json(trace), indent=1) + "\n", encoding="utf-8")
        if plot is not None:
            draw(trace, plot)
    except (TraceError, OSError) as error:
        print(f"weft trace: {error}", file=sys.stderr)
        return 2
    # A table that is read by a program, or goes into a file, is not cut.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    for title, table in tables_of(trace).items():
        if table.row_count == 0:
            continue
        console.print(f"\n{title}", highlight=False)
        console.print(table, highlight=False)
    return 0


def tables_of(trace: Trace) -> dict[str, Table]:
    """The tables by their titles, in the order in which they are read."""
    return {
        "Time of the PEs": _pes(trace),
        "Entry methods": _methods(trace),
        "Grain sizes: parts of entry methods by their time": _grains(trace),
        "Calls of MPI": _calls(trace),
        "The longest waits of entry methods": _waits(trace),
        "The chain of causes that ends with the last entry method": _path(trace),
        "Messages by their bytes": _messages(trace),
        "Transfers": _transfers(trace),
    }


def _table(first: str, *columns: str) -> Table:
    table = Table(box=None, header_style="")
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _pes(trace: Trace) -> Table:
    table = _table("PE", "total", "entry methods", "idle", "rest")
    for pe, one in sorted(trace.pes.items()):
        times = times_of(one)
        rest_ns = times.total_ns - times.methods_ns - times.idle_ns
        shares = [_share(part, times.total_ns) for part in (times.methods_ns, times.idle_ns, rest_ns)]
        table.add_row(str(pe), _time(times.total_ns), *shares)
    return table


def _methods(trace: Trace) -> Table:
    table = _table("method", "runs", "parts", "time", "mean part", "longest part")
    for name, method in methods_of(trace).items():
        mean = _time(method.time_ns // method.parts)
        numbers = (f"{method.runs:,}", f"{method.parts:,}", _time(method.time_ns), mean)
        table.add_row(name, *numbers, _time(method.longest_ns))
    return table


def _calls(trace: Trace) -> Table:
    table = _table("function", "PE", "calls", "time", "mean", "longest")
    for pe, one in sorted(trace.pes.items()):
        for function, calls in sorted(one.calls.items(), key=lambda item: -item[1].time_ns):
            numbers = (_time(calls.time_ns), _time(calls.time_ns // calls.count), _time(calls.longest_ns))
            table.add_row(function, str(pe), f"{calls.count:,}", *numbers)
    return table


def _grains(trace: Trace) -> Table:
    table = _table("below", "parts")
    counts: dict[int, int] = {}
    for method in methods_of(trace).values():
        for grain, count in method.grains.items():
            counts[grain] = counts.get(grain, 0) + count
    _add_histogram(table, {_time(1 << grain): counts[grain] for grain in sorted(counts)})
    return table


def _messages(trace: Trace) -> Table:
    table = _table("below", "messages")
    sizes = trace.message_sizes
    _add_histogram(table, {_size(1 << size): sizes[size] for size in sorted(sizes)})
    return table


def _add_histogram(table: Table, counts: dict[str, int]) -> None:
    table.add_column("")
    most = max(counts.values(), default=0)
    for label, count in counts.items():
        table.add_row(label, f"{count:,}", "█" * round(30 * count / most))


def _waits(trace: Trace) -> Table:
    table = _table("waited", "method", "element", "PE", "until")
    begin_ns = min(one.begin_ns for one in trace.pes.values())
    for wait in longest_waits(trace):
        until = _time(wait.resumed_ns - begin_ns)
        table.add_row(_time(wait.waited_ns), wait.method, str(wait.element), str(wait.pe), until)
    return table


def _path(trace: Trace) -> Table:
    table = _table("what", "time", "share")
    path = critical_path(trace)
    total_ns = sum(path.values())
    for what, time_ns in path.items():
        table.add_row(what, _time(time_ns), _share(time_ns, total_ns))
    return table


def _transfers(trace: Trace) -> Table:
    table = _table("path", "PE", "count", "bytes", "time of all")
    for pe, one in sorted(trace.pes.items()):
        for path, transfers in sorted(one.transfers.items()):
            size = _size(transfers.size_bytes)
            table.add_row(path, str(pe), f"{transfers.count:,}", size, _time(transfers.time_ns))
    return table


def as_json(trace: Trace) -> dict[str, Any]:
    """The same for programs; times in nanoseconds."""
    return {
        "num_events": trace.num_events,
        "pes": {pe: vars(times_of(one)) for pe, one in sorted(trace.pes.items())},
        "methods": {name: vars(method) for name, method in methods_of(trace).items()},
        "calls": {
            pe: {function: vars(found) for function, found in one.calls.items()}
            for pe, one in sorted(trace.pes.items())
        },
        "waits": [vars(wait) for wait in longest_waits(trace)],
        "critical_path": critical_path(trace),
        "message_sizes": {1 << size: count for size, count in sorted(trace.message_sizes.items())},
        "transfers": {
            pe: {path: vars(found) for path, found in one.transfers.items()}
            for pe, one in sorted(trace.pes.items())
        },
    }


def draw(trace: Trace, file: Path) -> None:
    """Draws the share of time in entry methods of each PE over the time of the job.

    Raises:
        TraceError: matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise TraceError("--plot needs matplotlib: pip install matplotlib") from error
    begin_ns = min(one.begin_ns for one in trace.pes.values())
    end_ns = max(one.end_ns for one in trace.pes.values())
    rows = [busy_share(trace.pes[pe], _BINS, begin_ns, end_ns) for pe in sorted(trace.pes)]
    figure = Figure(figsize=(10, 1.5 + 0.3 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    extent = (0, (end_ns - begin_ns) / 1e9, len(rows) - 0.5, -0.5)
    image = axes.imshow(rows, aspect="auto", extent=extent, vmin=0, vmax=1, interpolation="nearest")
    axes.set(xlabel="time (s)", ylabel="PE", title="share of the time in entry methods")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.colorbar(image)
    figure.savefig(file)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole > 0 else "-"


def _time(nanoseconds: int) -> str:
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= factor:
            return f"{nanoseconds / factor:.3g} {unit}"
    return f"{nanoseconds} ns"


def _size(size_bytes: int) -> str:
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes >= 1 << shift:
            return f"{size_bytes / (1 << shift):.3g} {unit}"
    return f"{size_bytes} B"
