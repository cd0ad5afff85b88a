"""What `weft lb` prints: load-balancing strategies compared on a file of recorded loads."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple


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
        strategies: The strategies, in the order of the rows: names, or FILE.py:FUNCTION. None of them means
            all strategies of Weft.

    Raises:
        LoadFileError: The extension module or the file cannot be read, or a strategy is not known or fails.
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
    modules: dict[str, ModuleType] = {}
    candidates = [_candidate(strategy, modules) for strategy in strategies]
    rows = []
    # One after the other, because only the command line knows how a function that fails is called there.
    for chosen in [[candidate] for candidate in candidates] or [[]]:
        try:
            counts, some = _core._compare_strategies(path, chosen)
        except weft.RemoteError as error:
            if error.type_name == "KeyboardInterrupt":
                raise KeyboardInterrupt from None
            name = chosen[0] if isinstance(chosen[0], str) else chosen[0][0]
            raise LoadFileError(
                f"the strategy {name} has failed: {error.type_name}: {error.message}\n"
                f"{error.traceback_text}".rstrip()
            ) from error
        except (weft.Error, ValueError) as error:
            raise LoadFileError(str(error)) from error
        rows += some
    return counts, [Comparison(*row) for row in rows]


def _candidate(strategy: str, modules: dict[str, ModuleType]) -> str | tuple[str, Callable[..., object]]:
    """The strategy of a command line: a name, or FILE.py:FUNCTION with the function."""
    path, colon, name = strategy.rpartition(":")
    if not colon or not path.endswith(".py"):
        return strategy
    file = str(Path(path).resolve())
    if file not in modules:
        modules[file] = _module_of(path, f"_weft_lb_{len(modules)}")
    function: Any = getattr(modules[file], name, None)
    if not callable(function):
        raise LoadFileError(
            f"--strategy {strategy}: the file has no function '{name}' at its top level; name a function "
            "that takes a snapshot and returns one PE for each object"
        )
    return strategy, function


def _module_of(path: str, name: str) -> ModuleType:
    """Runs the file as a module, which finds the modules beside it."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise LoadFileError(f"--strategy {path}: there is no such file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        lines = "".join(traceback.format_exception(error)).rstrip()
        raise LoadFileError(f"--strategy {path}: the file cannot be imported:\n{lines}") from error
    return module


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
