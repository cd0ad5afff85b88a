"""What `weft lb` prints: load-balancing strategies compared on a file of recorded loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class LoadFileError(Exception):
    """The comparison cannot be made; the message says why."""


class Comparison(NamedTuple):
    """What a strategy would do with the loads of a file."""

    strategy: str
    #: max / average - 1 of the times of the PEs
    imbalance_before: float
    imbalance_after: float
    #: the time of the most loaded PE, in seconds
    max_after_s: float
    moves: int
    bytes_moved: int
    #: bytes that objects on different PEs exchange
    external_bytes_before: int
    external_bytes_after: int
    #: the decision alone: the median of five runs, in milliseconds
    time_ms: float


_HEAD = ("strategy", "imbalance", "after", "max", "moves", "moved", "external", "after", "decision")


def comparison_lines(path: str, strategies: Sequence[str]) -> Iterator[str]:
    """The lines of the table.

    Args:
        path: A load file.
        strategies: The strategies, in the order of the rows; none of them means all.

    Raises:
        LoadFileError: The extension module or the file cannot be read, or a strategy is not known.
    """
    (pes, objects, edges), comparisons = _compare(path, strategies)
    rows = [_HEAD, *(_row(comparison) for comparison in comparisons)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    yield f"{path}: {pes} PEs, {objects} objects, {edges} pairs that communicate"
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join([row[0].ljust(widths[0]), *cells[1:]])


def _compare(path: str, strategies: Sequence[str]) -> tuple[tuple[int, int, int], list[Comparison]]:
    try:
        import weft
        from weft import _core
    except ImportError as error:
        raise LoadFileError(
            f"the extension module cannot be loaded ({error}); install the weft package, or run `make build`"
        ) from error
    try:
        counts, rows = _core._compare_strategies(path, strategies)
    except (weft.Error, ValueError) as error:
        raise LoadFileError(str(error)) from error
    return counts, [Comparison(*row) for row in rows]


def _row(comparison: Comparison) -> tuple[str, ...]:
    return (
        comparison.strategy,
        f"{comparison.imbalance_before:.1%}",
        f"{comparison.imbalance_after:.1%}",
        f"{comparison.max_after_s:.4g} s",
        str(comparison.moves),
        _bytes(comparison.bytes_moved),
        _bytes(comparison.external_bytes_before),
        _bytes(comparison.external_bytes_after),
        f"{comparison.time_ms:.3f} ms",
    )


def _bytes(size: int) -> str:
    """1234567 becomes 1.23 MB."""
    if size < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5:
            return f"{value:.3g} {unit}"
    return f"{value / 1000:.4g} PB"
