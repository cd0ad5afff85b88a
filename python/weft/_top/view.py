"""What `weft top` shows: a table of PEs and one of paths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.table import Table
from rich.text import Text

from weft._top.jobs import JobInfo
from weft._top.pages import MOST_QUEUED
from weft._top.samples import PeSample, totals

_BAR_CHARS = 20
# What a column takes, about.
_COLUMN_CHARS = 9
_SILENT_S = 1.0


@dataclass(frozen=True)
class Column:
    """A column of the table of PEs: `sort_key` orders the rows, the largest first; `show` makes the cell.

    It is shown in terminals of `min_width` characters, and if it `is_known` of a PE.
    """

    title: str
    sort_key: Callable[[PeSample], float]
    show: Callable[[PeSample], Text | str]
    min_width: int = 0
    is_known: Callable[[PeSample], bool] = lambda pe: True


COLUMNS = (
    Column("PE", lambda pe: -pe.pe, lambda pe: str(pe.pe)),
    Column("busy", lambda pe: pe.busy, lambda pe: percent(pe.busy)),
    Column("comm", lambda pe: pe.communication, lambda pe: percent(pe.communication)),
    Column("idle", lambda pe: pe.idle, lambda pe: percent(pe.idle)),
    Column("queue", lambda pe: pe.queued, lambda pe: queue(pe.queued)),
    Column("handled/s", lambda pe: pe.handled_per_s, lambda pe: quantity(pe.handled_per_s)),
    Column("messages/s", lambda pe: pe.messages_per_s, lambda pe: quantity(pe.messages_per_s), 84),
    Column("bytes/s", lambda pe: pe.bytes_per_s, lambda pe: quantity(pe.bytes_per_s)),
    Column("host", lambda pe: pe.host_bytes, lambda pe: size(pe.host_bytes)),
    Column("pool", lambda pe: pe.pool_bytes, lambda pe: size(pe.pool_bytes), 96),
    Column(
        "device",
        lambda pe: pe.device_bytes or 0,
        lambda pe: "-" if pe.device_bytes is None else size(pe.device_bytes),
        is_known=lambda pe: pe.device_bytes is not None,
    ),
    Column(
        "load",
        lambda pe: pe.step_load_s or 0.0,
        lambda pe: "-" if pe.step_load_s is None else duration(pe.step_load_s),
        is_known=lambda pe: pe.step_load_s is not None,
    ),
    Column(
        "on",
        lambda pe: 0.0,
        lambda pe: pe.host or "this host",
        is_known=lambda pe: pe.host is not None,
    ),
    Column(
        "idle for", lambda pe: pe.idle_for_s, lambda pe: duration(pe.idle_for_s) if pe.idle_for_s else "-"
    ),
)
HELP = "s: sort by the next column   r: reverse   w: what waits for what (on the job's stderr)   q: quit"


def picture(
    info: JobInfo | None,
    samples: Sequence[PeSample],
    *,
    sort: int = 0,
    is_reversed: bool = False,
    notes: Sequence[str] = (),
    rows: int | None = None,
    width: int = 160,
) -> Group:
    """The whole view. `sort` is an index of COLUMNS. `rows`: so many PEs have room. `width`: characters."""
    column = COLUMNS[sort]
    ordered = sorted(samples, key=lambda pe: (-column.sort_key(pe), pe.pe), reverse=is_reversed)
    shown = ordered if rows is None else ordered[:rows]
    parts: list[Text | Table] = [Text(headline(info, samples)), pes_table(shown, sort, width)]
    if len(shown) < len(ordered):
        parts.append(Text(f"and {len(ordered) - len(shown)} PEs more"))
    parts += [Text(""), paths_table(samples)]
    parts += [Text(note) for note in (*silent_notes(samples), *missing_notes(info), *notes)]
    return Group(*parts)


def headline(info: JobInfo | None, samples: Sequence[PeSample]) -> str:
    """One line about the job."""
    if info is None:
        return "no PE"
    busy = sum(pe.busy for pe in samples) / max(1, len(samples))
    handled = sum(pe.handled_per_s for pe in samples)
    return f"job {info.number}: {info.num_pes} PEs, {percent(busy)} busy, {quantity(handled)} handled/s"


def pes_table(samples: Sequence[PeSample], sort: int, width: int) -> Table:
    """A row for each PE."""
    columns = [
        column
        for column in COLUMNS
        if width >= column.min_width and any(column.is_known(pe) for pe in samples)
    ]
    has_bar = width >= _COLUMN_CHARS * len(columns) + _BAR_CHARS
    is_wide = width >= (_COLUMN_CHARS + 1) * len(columns) + _BAR_CHARS
    table = Table(box=None, padding=(0, 2 if is_wide else 1, 0, 0), header_style="bold")
    for column in columns:
        style = "bold reverse" if column is COLUMNS[sort] else ""
        table.add_column(column.title, justify="right", no_wrap=True, header_style=style)
    if has_bar:
        table.add_column("", no_wrap=True)
    for pe in samples:
        table.add_row(*(column.show(pe) for column in columns), *([bar(pe)] if has_bar else []))
    return table


def paths_table(samples: Sequence[PeSample]) -> Table:
    """A row for each path of transfers that was used."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("path")
    table.add_column("memory")
    table.add_column("messages/s", justify="right")
    table.add_column("bytes/s", justify="right")
    for rate in totals(samples):
        table.add_row(rate.path, rate.memory, quantity(rate.messages_per_s), quantity(rate.bytes_per_s))
    return table


def bar(pe: PeSample) -> Text:
    """Busy, communication and idle, drawn."""
    busy = round(pe.busy * _BAR_CHARS)
    communication = min(round(pe.communication * _BAR_CHARS), _BAR_CHARS - busy)
    text = Text("█" * busy, style="green")
    text.append("▒" * communication, style="yellow")
    text.append("·" * (_BAR_CHARS - busy - communication), style="dim")
    return text


def silent_notes(samples: Sequence[PeSample]) -> list[str]:
    """A line about PEs whose numbers are old."""
    silent = [pe for pe in samples if pe.silent_for_s >= _SILENT_S]
    if not silent:
        return []
    longest = max(silent, key=lambda pe: pe.silent_for_s)
    which = f", PE {longest.pe}" if len(silent) > 1 else ""
    return [
        f"{pes([pe.pe for pe in silent])} inside a long entry method or another call of the "
        f"program{which} for {duration(longest.silent_for_s)}: counters are those of before"
    ]


def missing_notes(info: JobInfo | None) -> list[str]:
    """A line about PEs that are not here."""
    if info is None or info.missing == 0:
        return []
    absent = [pe for pe in range(info.num_pes) if pe not in info.pids and pe not in info.others]
    return [
        f"{pes(absent)} not seen: on another host and without an answer, because they or the first PE here "
        "compute, or without a page in shared memory"
    ]


def pes(numbers: Sequence[int]) -> str:
    """ "PE 3 is", "PEs 0-2, 5 are"."""
    parts: list[str] = []
    last = -2
    for number in sorted(numbers):
        if parts and number == last + 1:
            parts[-1] = f"{parts[-1].partition('-')[0]}-{number}"
        else:
            parts.append(str(number))
        last = number
    return f"PE {parts[0]} is" if len(numbers) == 1 else f"PEs {', '.join(parts)} are"


def percent(share: float) -> str:
    """ "37 %"."""
    return f"{share * 100:.0f} %"


def queue(length: int) -> str:
    """Longer ones are not counted to their end."""
    return f"{length}+" if length >= MOST_QUEUED else str(length)


def quantity(value: float) -> str:
    """With a prefix of the SI: "1.2 M"."""
    return _scaled(value, 1000, ("", " k", " M", " G", " T"))


def size(value: float) -> str:
    """Memory: "3.4 MiB"."""
    return _scaled(value, 1024, (" B", " KiB", " MiB", " GiB", " TiB"))


def _scaled(value: float, base: int, units: Sequence[str]) -> str:
    power = 0
    while power + 1 < len(units) and value >= 0.9995 * base:
        value /= base
        power += 1
    digits = 0 if power == 0 or value >= 100 else 1
    return f"{value:.{digits}f}{units[power]}"


def duration(seconds: float) -> str:
    """ "3 us", "12 ms", "4.2 s", "5 min", "3 h"."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{math.floor(seconds / 60)} min" if seconds < 7200 else f"{math.floor(seconds / 3600)} h"
