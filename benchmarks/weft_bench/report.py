"""What people see of records: tables in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weft_bench.question import DISTINCT_BUFFERS, ONE_BUFFER, without_buffers
from weft_bench.record import METRICS, Record
from weft_bench.schedule import Outcome
from weft_bench.system import Series
from weft_bench.system_ucx import WEFT_SETTINGS

TITLES = {
    "latency_us": "One-way latency, us",
    "bandwidth_GBps": "Bandwidth, GB/s (10^9)",
    "rate_Mps": "Message rate, million/s",
    "time_s": "Time, s",
    "time_us": "Time, us",
    "memory_bytes": "Memory, bytes",
    "half_size_bytes": "Size of half the peak, bytes",
}
_TITLES_OF_BENCHES = {
    "pgas_latency": "Time of an operation that is awaited, us",
    "pgas_flood": "Bandwidth of operations by one PE, 100 in flight, GB/s (10^9)",
    "pgas_flood_both": "Bandwidth of operations by both PEs, 100 in flight each, GB/s (10^9)",
    "pgas_fetch_add": "Time of a fetch-add that is awaited, us",
    "memspeed": "Bandwidth of large copies, one after the other, GB/s (10^9)",
    "all_reduce": "Time of an all-reduce of device arrays, us",
    "all_gather": "Time of an all-gather of device arrays, us",
    "reduce_scatter": "Time of a reduce-scatter of device arrays, us",
}


def title_of(record: Record) -> str:
    """What the values of the record's bench are, with their unit."""
    return _TITLES_OF_BENCHES.get(record.bench, TITLES[record.metric])


#: A table is laid out for this width where the output is no terminal.
_PLAIN_WIDTH = 150


def make_console() -> Console:
    """For standard output; wide enough for the tables when it is a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=_PLAIN_WIDTH)


#: Raw UCX is told to be faster with other settings than Weft's when it is by this factor.
_FASTER = 1.05


def series_of(record: Record) -> Series:
    """Without the buffers: records of one table or one picture agree on them."""
    return Series(record.system, record.model, record.language, without_buffers(record.path))


def by_buffers(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records that are comparable, by the buffers that they used ("" for all other benches)."""
    found: dict[str, list[Record]] = {}
    for record in records:
        last = record.path.rpartition(", ")[2]
        found.setdefault(last if last in (ONE_BUFFER, DISTINCT_BUFFERS) else "", []).append(record)
    return found


def size_label(size_bytes: int) -> str:
    """8, 64K, 4M: powers of 1024 where they come out even."""
    for unit, shift in (("G", 30), ("M", 20), ("K", 10)):
        if size_bytes >= 1 << shift and size_bytes % (1 << shift) == 0:
            return f"{size_bytes >> shift}{unit}"
    return str(size_bytes)


def value_label(value: float) -> str:
    """Three significant digits, without an exponent where that is short."""
    return f"{value:.0f}" if value >= 1000 else f"{value:#.3g}".rstrip(".")


def runs_label(records: Iterable[Record]) -> str:
    """How many runs the records have, as 5 or "2 to 3"."""
    counts = sorted({record.runs for record in records})
    return " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))


def best_of(records: Iterable[Record], system: str) -> dict[int, Record]:
    """By size, the record of `system` with the best median of those that went different ways."""
    best: dict[int, Record] = {}
    for record in records:
        if record.system == system:
            smaller_is_better = METRICS[record.metric][1]
            known = best.get(record.size_bytes)
            if known is None or (record.median < known.median) == smaller_is_better:
                best[record.size_bytes] = record
    return best


def raw_ucx_lines(records: Sequence[Record]) -> tuple[str, str]:
    """The best setting of raw UCX by size; and where Weft's settings are the slower ones, "" if nowhere."""
    tagged = [r for r in records if r.system == "ucx" and r.memory == "host" and _setting(r)[0] == "tag"]
    own = {r.size_bytes: r for r in tagged if _setting(r)[1] == WEFT_SETTINGS.name}
    best_parts, slower_parts = [], []
    for size, best in sorted(best_of(tagged, "ucx").items()):
        name = _setting(best)[1]
        best_parts.append(f"{size_label(size)} {value_label(best.median)} {best.unit} ({name})")
        if size in own and best.median > 0 and own[size].median > 0:
            factor = max(best.median / own[size].median, own[size].median / best.median)
            if factor >= _FASTER:
                slower_parts.append(f"{size_label(size)} {factor:.2f} x ({name})")
    best_line = f"raw UCX at its best: {', '.join(best_parts)}" if best_parts else ""
    slower = "Weft's settings of UCX are the slower ones on this machine; raw UCX gains with others: "
    return best_line, slower + ", ".join(slower_parts) if slower_parts else ""


def _setting(record: Record) -> tuple[str, str]:
    """Way and setting of a record of raw UCX."""
    way, _, setting = without_buffers(record.path).partition(", ")
    return way, setting


def table(records: Sequence[Record], buffers: str = "") -> Table:
    """Medians of records of one metric: a row per series, a column per size, the best in each column bold."""
    rows = list(dict.fromkeys(series_of(record) for record in records))
    cells = {(series_of(record), record.size_bytes): record for record in records}
    sizes = sorted({record.size_bytes for record in records})
    metric = records[0].metric
    best_value = min if METRICS[metric][1] else max
    best = {size: best_value(r.median for r in records if r.size_bytes == size) for size in sizes}
    title = f"{title_of(records[0])}: median of {runs_label(records)} runs, {records[0].memory} memory"
    result = Table(title=f"{title}, {buffers}" if buffers else title)
    result.add_column("bytes")
    for size in sizes:
        result.add_column(size_label(size), justify="right", no_wrap=True)
    for series in rows:
        found = [cells.get((series, size)) for size in sizes]
        result.add_row(escape(series.label), *(_cell(record, best) for record in found))
    return result


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    lines = [titles, ["---"] * len(titles), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def show(outcome: Outcome, console: Console) -> None:
    """Print the tables, then what is absent and what failed, each with what to do."""
    if outcome.records:
        for buffers, records in by_buffers(outcome.records).items():
            console.print(table(records, buffers))
            for line, style in zip(raw_ucx_lines(records), ("", "yellow"), strict=True):
                if line:
                    console.print(escape(line), style=style, highlight=False)
        first = outcome.records[0]
        console.print(f"{escape(first.host)}; {first.date}; {first.git}", style="dim", highlight=False)
    show_problems(outcome, console)


def show_problems(outcome: Outcome, console: Console) -> None:
    """Print what is absent, what failed, and whether the machine kept still."""
    for text in outcome.stopped:
        console.print(escape(text), style="yellow", highlight=False)
    if outcome.unsteady:
        text = f"the cores moved: {outcome.unsteady} runs are lacking at one distance; do not compare closely"
        console.print(text, style="yellow")
    for label, advice in outcome.absent.items():
        console.print(f"absent: {escape(label)}: {escape(advice)}", style="yellow", highlight=False)
    for label, reason in outcome.failed.items():
        console.print(f"failed: {escape(label)}: {escape(reason)}", style="red", highlight=False)


def _cell(record: Record | None, best: dict[int, float]) -> str:
    if record is None:
        return "-"
    text = value_label(record.median)
    return f"[bold]{text}[/bold]" if record.median == best[record.size_bytes] else text
