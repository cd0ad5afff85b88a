"""One measured figure: the JSON object that every Weft benchmark writes, one per line.

The fields are the format; a reader may rely on their names, order and units. `median`, `min` and `max` are
over `runs` fresh launches and are in `unit`, which `metric` implies.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from weft_bench.errors import BenchError

#: metric -> (unit, whether a smaller value is the better one)
METRICS: dict[str, tuple[str, bool]] = {
    "latency_us": ("us", True),
    "bandwidth_GBps": ("GB/s", False),
    "rate_Mps": ("M/s", False),
    "time_s": ("s", True),
    "time_us": ("us", True),
    "memory_bytes": ("B", True),
    "half_size_bytes": ("B", True),
}

SYSTEMS = (
    "weft",
    "ucx",
    "openmpi",
    "mpich",
    "mpi4py-openmpi",
    "mpi4py-mpich",
    "charm++",
    "charm4py",
    "nccl",
    "peer-copy",
    "cache-line",
)
MODELS = ("machine", "messaging", "channel", "queued", "graph", "mpi", "pgas")
LANGUAGES = ("cpp", "python")
MEMORIES = ("host", "emulated", "cuda")


@dataclasses.dataclass(frozen=True)
class Record:
    """A figure with everything needed to know later what it meant.

    `path` says which way through the system was taken (for example "tag, default settings"); `warmup` counts
    the iterations before the timed ones; `date` is ISO 8601 in UTC.
    """

    bench: str
    system: str
    model: str
    language: str
    memory: str
    path: str
    pes: int
    size_bytes: int
    metric: str
    unit: str
    median: float
    min: float
    max: float
    runs: int
    warmup: int
    git: str
    host: str
    date: str

    def __post_init__(self) -> None:
        allowed = {
            "system": SYSTEMS,
            "model": MODELS,
            "language": LANGUAGES,
            "memory": MEMORIES,
            "metric": METRICS,
        }
        for field, values in allowed.items():
            if getattr(self, field) not in values:
                self._refuse(field, f"one of {', '.join(values)}")
        if self.unit != METRICS[self.metric][0]:
            self._refuse("unit", f"{METRICS[self.metric][0]} for metric {self.metric}")
        for field, least in {"pes": 1, "size_bytes": 0, "runs": 1, "warmup": 0}.items():
            if getattr(self, field) < least:
                self._refuse(field, f"at least {least}")
        if not all(math.isfinite(value) for value in (self.min, self.median, self.max)):
            self._refuse("median", "finite, as min and max")
        if not self.min <= self.median <= self.max:
            self._refuse("median", f"between min {self.min} and max {self.max}")

    def to_json(self) -> str:
        """One line, no newline at its end."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Record:
        """The record in `line`; raises BenchError naming what is missing, unknown or of the wrong type."""
        try:
            fields = json.loads(line)
        except json.JSONDecodeError as error:
            raise BenchError(f"not a record, because not JSON ({error}): {line[:80]!r}") from error
        return cls(**_checked(fields))

    def _refuse(self, field: str, wanted: str) -> None:
        got = repr(getattr(self, field))
        raise BenchError(f"record of {self.system}, bench {self.bench}: {field} must be {wanted}, got {got}")


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write `records` to `path`, one JSON object per line, replacing what was there, all at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text("".join(record.to_json() + "\n" for record in records), encoding="utf-8")
    part.replace(path)


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file that `write_records` wrote; empty lines are skipped."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            try:
                yield Record.from_json(line)
            except BenchError as error:
                raise BenchError(f"{path}, line {number}: {error}") from error


def _checked(fields: Any) -> dict[str, Any]:
    """`fields` with whole numbers made floats where the record has floats; raises BenchError otherwise."""
    if not isinstance(fields, dict):
        raise BenchError(f"a record is a JSON object, got {type(fields).__name__}")
    declared = {field.name: str(field.type) for field in dataclasses.fields(Record)}
    if missing := declared.keys() - fields.keys():
        raise BenchError(f"record lacks {', '.join(sorted(missing))}")
    if unknown := fields.keys() - declared.keys():
        raise BenchError(f"record has unknown fields {', '.join(sorted(unknown))}")
    for name, kind in declared.items():
        value = fields[name]
        if kind == "float" and type(value) is int:
            fields[name] = float(value)
        elif type(value).__name__ != kind:
            raise BenchError(f"record field {name} must be {kind}, got {value!r}")
    return fields
