"""Published figures of GPU-aware message-driven communication, with Weft's beside them.

Each published figure is a ratio: the largest advantage of GPU memory that is not staged over GPU memory that
is staged through host memory, on the machine of its authors: Choi, Fink, White, Bhat, Richards, Kale,
"Accelerating communication for parallel programming models on GPU systems", Parallel Computing, 2022. Weft's
figure is the same ratio for the same kind of program, from records of `weft bench` on GPUs. A figure without
records is "not measured".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from weft_bench.record import METRICS, Record

#: Messages up to this size are eager ones.
_EAGER_BYTES = 4096


@dataclasses.dataclass(frozen=True)
class Figure:
    """`published` is the largest ratio of `system`. Weft's is that of this bench, model and language."""

    text: str
    system: str
    published: str
    bench: str
    model: str
    language: str
    most_bytes: int | None = None


FIGURES = (
    Figure("latency", "Charm++", "10.1", "latency", "messaging", "cpp"),
    Figure("latency", "AMPI", "11.7", "latency", "mpi", "cpp"),
    Figure("latency", "Charm4py", "17.4", "latency", "channel", "python"),
    Figure("latency of eager messages", "Charm++", "3 to 9", "latency", "messaging", "cpp", _EAGER_BYTES),
    Figure("bandwidth", "Charm++", "10.1", "bandwidth", "messaging", "cpp"),
    Figure("bandwidth", "AMPI", "10", "bandwidth", "mpi", "cpp"),
    Figure("bandwidth", "Charm4py", "10.5", "bandwidth", "channel", "python"),
    Figure("Jacobi3D, communication", "Charm++", "12.4", "jacobi3d", "messaging", "cpp"),
    Figure("Jacobi3D, communication", "AMPI", "12.8", "jacobi3d", "mpi", "cpp"),
    Figure("Jacobi3D, communication", "Charm4py", "19.7", "jacobi3d", "channel", "python"),
    # Not published: the model that a C++ program would use.
    Figure("latency", "-", "-", "latency", "channel", "cpp"),
    Figure("bandwidth", "-", "-", "bandwidth", "channel", "cpp"),
    Figure("Jacobi3D, communication", "-", "-", "jacobi3d", "channel", "cpp"),
)


@dataclasses.dataclass(frozen=True)
class Ratio:
    """The advantage of `direct`, which is not staged, over `staged`: same program, size and number of PEs."""

    value: float
    direct: Record
    staged: Record


def ours(figure: Figure, records: Sequence[Record]) -> Ratio | None:
    """The largest ratio that the records have for `figure`, of GPU memory; None when it was not measured."""
    found = [
        record
        for record in records
        if (record.bench, record.model, record.language, record.system)
        == (figure.bench, figure.model, figure.language, "weft")
        and record.memory == "cuda"
        and (figure.most_bytes is None or record.size_bytes <= figure.most_bytes)
        and (figure.bench != "jacobi3d" or ("communication" in _words(record) and record.pes > 1))
    ]
    staged = {_setting(record): record for record in found if "staged" in _words(record)}
    ratios = []
    for record in found:
        other = staged.get(_setting(record))
        if other is None or other is record or not (record.median > 0 and other.median > 0):
            continue
        smaller_is_better = METRICS[record.metric][1]
        value = other.median / record.median if smaller_is_better else record.median / other.median
        ratios.append(Ratio(value, record, other))
    return max(ratios, key=lambda ratio: ratio.value, default=None)


def _words(record: Record) -> list[str]:
    return record.path.split(", ")


def _setting(record: Record) -> tuple[object, ...]:
    """The values that a staged record and one that is not staged must share to be compared."""
    # In records from before 2026-11-22 "direct" means "through UCX". In Jacobi3D's it means "not staged".
    ways = ("through UCX", "direct", "peer-mapped", "staged", "tagged", "active")
    rest = tuple(word for word in _words(record) if word not in ways)
    return record.metric, record.pes, record.size_bytes, record.host, rest
