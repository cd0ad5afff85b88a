"""What people see of ``weft bench cores``: a table and a page for each number of PEs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from weft_bench.cores.machine import TOO_FEW
from weft_bench.cores.points import OPERATIONS
from weft_bench.cores.running import Outcome
from weft_bench.plot import write_plot
from weft_bench.record import METRICS, Record
from weft_bench.report import markdown_table, runs_label, series_of, size_label, value_label
from weft_bench.system import Series

#: The last column, if there is an MPI beside Weft's.
RATIO = "Weft's MPI / best other MPI"
NOTES = (
    f"A figure with * was taken with {TOO_FEW}. A rate is better if it is higher, a time if it is lower. The "
    "best figure of a line is bold. In windows of 64, half of the PEs send."
)


def heading_of(series: Series) -> str:
    """The series as a column."""
    names = {"openmpi": "Open MPI", "mpich": "MPICH"}
    if series.system in names:
        return f"{names[series.system]} {series.path}".rstrip()
    language = {"cpp": "C++", "python": "Python"}[series.language]
    names = {"mpi": "Weft's MPI", "messaging": f"chares, {language}", "pgas": f"teams, {language}"}
    return names[series.model]


def lines_of(records: Sequence[Record]) -> tuple[list[str], list[list[str]], list[int]]:
    """Of the records of one number of PEs: titles, cells, and the column of the best figure of each line."""
    columns = list(dict.fromkeys(series_of(record) for record in records))
    by_place = {(record.bench, record.size_bytes, series_of(record)): record for record in records}
    rows = sorted({(record.bench, record.size_bytes) for record in records}, key=_order)
    mpi = [series for series in columns if series.model == "mpi"]
    has_ratio = any(series.system == "weft" for series in mpi) and len(mpi) > 1
    titles = ["operation", "bytes", "unit", *map(heading_of, columns), *([RATIO] if has_ratio else [])]
    lines, best_columns = [], []
    for bench, size_bytes in rows:
        found = [by_place.get((bench, size_bytes, series)) for series in columns]
        present = [record for record in found if record is not None]
        best = _best(present)
        line = [_name(bench), size_label(size_bytes) if size_bytes else "", best.unit, *map(_cell, found)]
        lines.append(line + ([_ratio(present)] if has_ratio else []))
        best_columns.append(len(titles) - len(columns) - has_ratio + found.index(best))
    return titles, lines, best_columns


def table(records: Sequence[Record], cores: str) -> Table:
    """The records of one number of PEs, for the terminal."""
    titles, lines, best_columns = lines_of(records)
    title = f"{records[0].pes} PEs, median of {runs_label(records)} runs; {cores}"
    result = Table(title=escape(title))
    for number, heading in enumerate(titles):
        result.add_column(heading, justify="left" if number in (0, 2) else "right")
    for number, (line, best) in enumerate(zip(lines, best_columns, strict=True)):
        if number > 0 and line[0] != lines[number - 1][0]:
            result.add_section()
        cells = [f"[bold]{escape(cell)}[/bold]" if n == best else escape(cell) for n, cell in enumerate(line)]
        result.add_row(*cells)
    return result


def problem_lines(outcome: Outcome) -> list[str]:
    """What is missing, and why."""
    lines = list(outcome.stopped)
    reasons: dict[str, list[str]] = {}
    for label, reason in outcome.absent.items():
        reasons.setdefault(reason, []).append(label)
    lines += [f"absent: {'; '.join(labels)}: {reason}" for reason, labels in reasons.items()]
    return lines + [f"failed: {label}: {reason}" for label, reason in outcome.failed.items()]


def by_pes(records: Sequence[Record]) -> dict[int, list[Record]]:
    """Records by their number of PEs."""
    found: dict[int, list[Record]] = {}
    for record in records:
        found.setdefault(record.pes, []).append(record)
    return found


def write_pages(folder: Path, outcome: Outcome, about: Sequence[str], plots: bool) -> list[Path]:
    """Write pes-N.md with a table into `folder`, and if `plots` is set a picture beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for pes, records in by_pes(outcome.records).items():
        page = folder / f"pes-{pes}.md"
        titles, lines, best_columns = lines_of(records)
        for line, best in zip(lines, best_columns, strict=True):
            line[best] = f"**{line[best]}**"
        first = records[0]
        text = [f"# {pes} PEs", "", f"{'; '.join(about)}; {first.date}; {first.git}.", ""]
        text += [f"Medians of {runs_label(records)} runs; {outcome.cores[pes]}.", "", NOTES, ""]
        text += markdown_table(titles, lines)
        if plots:
            picture = page.with_suffix(".png")
            host = f"{about[0]}, {outcome.cores[pes]}"  # not that of one program alone
            drawn = [dataclasses.replace(record, host=host) for record in records]
            write_plot(picture, [r for r in drawn if len(OPERATIONS[_operation(r.bench)]) > 1] or drawn)
            text += ["", f"![Medians by size]({picture.name})"]
        if problems := problem_lines(outcome):
            text += [
                "",
                "## What is missing",
                "",
                *(f"- {' '.join(problem.split())}" for problem in problems),
            ]
        page.write_text("\n".join(text) + "\n", encoding="utf-8")
        written.append(page)
    return written


def _operation(bench: str) -> str:
    return bench.removeprefix("cores_")


def _name(bench: str) -> str:
    return _operation(bench).replace("_", " ").replace("all to one", "all to one, any source")


def _order(row: tuple[str, int]) -> tuple[int, int]:
    return list(OPERATIONS).index(_operation(row[0])), row[1]


def _best(records: Sequence[Record]) -> Record:
    choose = min if METRICS[records[0].metric][1] else max
    return choose(records, key=lambda record: record.median)


def _ratio(records: Sequence[Record]) -> str:
    own = [r for r in records if r.model == "mpi" and r.system == "weft"]
    others = [r for r in records if r.model == "mpi" and r.system != "weft"]
    if not own or not others or _best(others).median <= 0:
        return "-"
    return f"{own[0].median / _best(others).median:.2f}"


def _cell(record: Record | None) -> str:
    if record is None:
        return "-"
    return value_label(record.median) + ("*" if TOO_FEW in record.host else "")
