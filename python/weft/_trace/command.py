"""`weft trace FILE`: the summary of a trace as tables, as JSON and as a plot."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from weft._trace.elements import write_elements
from weft._trace.plots import draw
from weft._trace.reading import Trace, TraceError, Uses, read_trace
from weft._trace.summary import critical_path, longest_waits, methods_of, times_of
from weft._trace.tables import tables_of


def print_summary(file: Path, json_file: Path | None, plot: Path | None, elements: Path | None) -> int:
    """Prints it; returns the exit code."""
    try:
        trace = read_trace(file)
        if json_file is not None:
            json_file.write_text(json.dumps(as_json(trace), indent=1) + "\n", encoding="utf-8")
        if plot is not None:
            draw(trace, plot)
        if elements is not None:
            write_elements(trace, elements)
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


def as_json(trace: Trace) -> dict[str, Any]:
    """The same for programs; times in nanoseconds."""

    def by_pe(uses: str) -> dict[int, dict[str, Any]]:
        found: dict[int, dict[str, Any]] = {}
        for pe, one in sorted(trace.pes.items()):
            of_pe: dict[Any, Uses] = getattr(one, uses)
            found[pe] = {
                ", ".join([key] if isinstance(key, str) else key): vars(use) for key, use in of_pe.items()
            }
        return found

    return {
        "num_events": trace.num_events,
        "pes": {
            pe: {**vars(times_of(one)), "num_arrived": one.num_arrived}
            for pe, one in sorted(trace.pes.items())
        },
        "methods": {name: vars(method) for name, method in methods_of(trace).items()},
        "calls": by_pe("calls"),
        "waits": [vars(wait) for wait in longest_waits(trace)],
        "critical_path": critical_path(trace),
        "message_sizes": {
            1 << size: {"own_pe": own, "other_pes": others}
            for size, (own, others) in sorted(trace.message_sizes.items())
        },
        "transfers": by_pe("transfers"),
        "operations": by_pe("operations"),
        "device_work": by_pe("device_work"),
    }
