"""The summary of a trace as tables."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from weft._trace.reading import Trace, Uses
from weft._trace.summary import critical_path, grains_of, longest_waits, methods_of, times_of


def tables_of(trace: Trace) -> dict[str, Table]:
    """The tables by their titles, in the order in which they are read."""
    pes = sorted(trace.pes.items())
    return {
        "Time of the PEs": _pes(trace),
        "Entry methods": _methods(trace),
        "Grain sizes: parts of entry methods by their time": _grains(trace),
        "Calls of MPI": _uses(
            "function", ((name, pe, use) for pe, one in pes for name, use in one.calls.items())
        ),
        "The longest waits of entry methods": _waits(trace),
        "The chain of causes that ends with the last entry method": _path(trace),
        "Messages by their bytes": _messages(trace),
        "Transfers": _transfers(trace),
        "Collective operations, steps of load balancing, checkpoints": _uses(
            "operation", ((name, pe, use) for pe, one in pes for name, use in one.operations.items())
        ),
        "Work of devices": _uses(
            "stream and method",
            (
                (f"{stream}, {name}", pe, use)
                for pe, one in pes
                for (stream, name), use in one.device_work.items()
            ),
        ),
    }


def _table(first: str, *columns: str) -> Table:
    table = Table(box=None, header_style="")
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _pes(trace: Trace) -> Table:
    table = _table("PE", "total", "entry methods", "idle", "rest", "longest queue", "elements that came")
    for pe, one in sorted(trace.pes.items()):
        times = times_of(one)
        rest_ns = times.total_ns - times.methods_ns - times.idle_ns
        shares = [_share(part, times.total_ns) for part in (times.methods_ns, times.idle_ns, rest_ns)]
        counts = (f"{one.longest_queue:,}", f"{one.num_arrived:,}")
        table.add_row(str(pe), _time(times.total_ns), *shares, *counts)
    return table


def _methods(trace: Trace) -> Table:
    table = _table("method", "runs", "parts", "time", "mean part", "longest part")
    for name, method in methods_of(trace).items():
        mean = _time(method.time_ns // method.parts)
        numbers = (f"{method.runs:,}", f"{method.parts:,}", _time(method.time_ns), mean)
        table.add_row(name, *numbers, _time(method.longest_ns))
    return table


def _uses(first: str, uses: Iterable[tuple[str, int, Uses]]) -> Table:
    table = _table(first, "PE", "count", "time", "mean", "longest")
    for name, pe, use in sorted(uses, key=lambda row: (row[1], -row[2].time_ns)):
        times = (_time(use.time_ns), _time(use.time_ns // use.count), _time(use.longest_ns))
        table.add_row(name, str(pe), f"{use.count:,}", *times)
    return table


def _grains(trace: Trace) -> Table:
    table = _histogram("below", "parts")
    grains = grains_of(trace)
    for grain, bar in zip(grains, _bars(list(grains.values())), strict=True):
        table.add_row(_time(1 << grain), f"{grains[grain]:,}", bar)
    return table


def _messages(trace: Trace) -> Table:
    table = _histogram("below", "to the own PE", "to other PEs")
    sizes = dict(sorted(trace.message_sizes.items()))
    for size, bar in zip(sizes, _bars([sum(counts) for counts in sizes.values()]), strict=True):
        table.add_row(_size(1 << size), *(f"{count:,}" for count in sizes[size]), bar)
    return table


def _histogram(first: str, *columns: str) -> Table:
    table = _table(first, *columns)
    table.add_column("")
    return table


def _bars(counts: list[int]) -> list[str]:
    """Bars of up to 30 characters."""
    return ["█" * round(30 * count / max(counts)) for count in counts]


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
        for path, use in sorted(one.transfers.items()):
            table.add_row(path, str(pe), f"{use.count:,}", _size(use.size_bytes), _time(use.time_ns))
    return table


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
