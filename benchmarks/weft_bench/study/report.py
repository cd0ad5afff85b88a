"""What people see of a study: a table on the terminal, and a page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from weft_bench.report import markdown_table
from weft_bench.study.claims import Verdict
from weft_bench.study.plan import Study
from weft_bench.study.running import Outcome
from weft_bench.study.summary import FEWEST_TRIALS, PARTS, Row
from weft_bench.study.trials import Header

#: A column that is empty in all rows is left out.
TITLES = (
    *("group", "variant", "trials", "mean, s", "99 % interval, s"),
    *(f"{part.removesuffix('_s')}, s" for part in PARTS),
    *("efficiency", "time / first", "99 %", "p"),
)


def cells_of(row: Row) -> tuple[str, ...]:
    """The cells of a table, below TITLES."""
    ratio = row.ratio
    return (
        row.group,
        row.variant,
        str(row.trials),
        f"{row.mean.estimate:.4g}",
        f"{row.mean.low:.4g} to {row.mean.high:.4g}",
        *("" if part is None else f"{part:.4g}" for part in row.parts),
        "" if row.efficiency is None else f"{100 * row.efficiency:.1f} %",
        "" if ratio is None else f"{ratio.estimate:.3f}",
        "" if ratio is None else f"{ratio.low:.3f} to {ratio.high:.3f}",
        "" if row.test is None else f"{row.test.p:.2g}",
    )


def columns_of(rows: Sequence[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Titles, and the cells of each row."""
    cells = [cells_of(row) for row in rows]
    used = [n for n in range(len(TITLES)) if n == 0 or any(line[n] for line in cells)]
    return tuple(TITLES[n] for n in used), [tuple(line[n] for n in used) for line in cells]


def table(study: Study, rows: Sequence[Row]) -> Table:
    """All rows, for the terminal."""
    titles, lines = columns_of(rows)
    result = Table(title=f"Study {study.name}")
    for title in titles:
        result.add_column(title, justify="left" if title in TITLES[:2] else "right")
    for number, line in enumerate(lines):
        if number > 0 and line[0] != lines[number - 1][0]:
            result.add_section()
        result.add_row(*map(escape, line))
    return result


def problem_lines(study: Study, rows: Sequence[Row], outcome: Outcome) -> list[str]:
    """What is missing, and why."""
    lines = [f"absent: {label}: {why}" for label, why in outcome.absent.items()]
    lines += [f"failed: {label}: {why}" for label, why in outcome.failed.items()]
    if outcome.stopped:
        lines.append(f"{outcome.stopped}: the same command makes the trials that are missing")
    if rows and min(row.trials for row in rows) < FEWEST_TRIALS:
        lines.append(f"fewer than {FEWEST_TRIALS} trials cannot show a difference at the 1 % level")
    return lines


def markdown(
    study: Study,
    header: Header,
    rows: Sequence[Row],
    verdicts: Sequence[Verdict],
    problems: Sequence[str],
    picture: str = "",
) -> str:
    """The page. `picture` is the name of a file beside it."""
    where = header.where
    lines = [
        f"# Study {study.name}",
        "",
        f"{where.host}; {where.git}; begun {where.date}.",
        "",
        f"{study.trials} trials of each variant in random order within its group (seed {header.seed}), after "
        f"{study.warmup} that are not counted.",
        "",
        "Times are those between two barriers around the timed part. Intervals are bootstrapped. p is that "
        "of the Mann-Whitney U test against the first variant of the group.",
        "",
        *markdown_table(*columns_of(rows)),
    ]
    if picture:
        lines += ["", f"![Means with their intervals]({picture})"]
    if verdicts:
        claims = [(v.claim.text, v.claim.source, v.verdict, v.why) for v in verdicts]
        lines += ["", "## Published claims", ""]
        lines += markdown_table(("claim", "source", "here", "measured"), claims)
    if problems:
        lines += ["", "## What is missing", "", *(f"- {' '.join(problem.split())}" for problem in problems)]
    return "\n".join(lines) + "\n"
