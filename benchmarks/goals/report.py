"""Tables of the goals and of the published figures."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from goals.figures import Verdict
from goals.published import FIGURES, ours
from weft_bench.question import without_buffers
from weft_bench.record import METRICS, Record
from weft_bench.report import size_label, value_label
from weft_bench.system import Series


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """A row per goal: what was measured, the reference, the limit, and whether it is met."""
    result = Table(title="Figures")
    result.add_column("figure")
    for heading in ("measured", "reference", "ratio", "of best", "limit", "min .. max"):
        result.add_column(heading, justify="right")
    result.add_column("")
    for verdict in verdicts:
        goal, measured, reference = verdict.goal, verdict.measured, verdict.reference
        metric = goal.question.metric
        unit, at_most = METRICS[metric]
        sign = "<=" if at_most else ">="
        limit = f"{sign} {value_label(verdict.factor)} {'x' if goal.reference else unit}"
        text = {True: "[green]met[/green]", False: "[red]missed[/red]", None: "[yellow]not measured[/yellow]"}
        result.add_row(
            escape(goal.text),
            _measured_label(verdict),
            escape(_reference_label(reference)) if reference else "-",
            _ratio(verdict.ratio),
            _ratio(verdict.ratio_of_best),
            limit,
            f"{value_label(measured.min)} .. {value_label(measured.max)}" if measured else "-",
            text[verdict.met],
        )
    return result


def published_table(records: Sequence[Record]) -> Table:
    """A row for each published figure, with Weft's beside it."""
    result = Table(title="GPU memory not staged, over the same staged through host memory: the largest ratio")
    for heading in ("figure", "published for", "published", "ours", "measured", "at"):
        result.add_column(heading)
    for figure in FIGURES:
        found = ours(figure, records)
        published = "-" if figure.published == "-" else f"{figure.published} x"
        program = Series("weft", figure.model, figure.language).label
        if found is None:
            result.add_row(figure.text, figure.system, published, program, "not measured", "")
            continue
        direct = found.direct
        size = f"{direct.pes} PEs" if figure.bench == "jacobi3d" else f"{size_label(direct.size_bytes)} B"
        at = f"{size}, {direct.path}"
        result.add_row(figure.text, figure.system, published, program, f"{found.value:.1f} x", at)
    return result


def _measured_label(verdict: Verdict) -> str:
    """With the size where that is not the question's only one."""
    if verdict.measured is None:
        return "-"
    question, record = verdict.goal.question, verdict.measured
    at = f" at {size_label(record.size_bytes)}" if len(question.sizes) > 1 else ""
    return f"{value_label(record.median)} {record.unit}{at}"


def _reference_label(record: Record) -> str:
    """With the setting of raw UCX, of which there are several."""
    way = f", {without_buffers(record.path)}" if record.system == "ucx" else ""
    return f"{value_label(record.median)} {record.unit}, {record.system}{way}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} x"
