"""What the harness needs of a system that it measures."""

from __future__ import annotations

import dataclasses
from typing import Protocol

from weft_bench.question import Question


@dataclasses.dataclass(frozen=True)
class Series:
    """Which line of the plot, column of the table: everything in a record that does not vary with size."""

    system: str
    model: str
    language: str
    path: str = ""

    @property
    def label(self) -> str:
        """Short name for tables and legends, as "weft channel, C++" or "ucx, tag, default settings"."""
        name = self.system
        if self.system in ("weft", "charm4py"):
            name += " entry method" if self.model == "messaging" else f" {self.model}"
        if self.system == "weft":
            name += {"cpp": ", C++", "python": ", Python"}[self.language]
        return f"{name}, {self.path}" if self.path else name


@dataclasses.dataclass(frozen=True)
class Reading:
    """What one launch measured at one size; `value` is in the unit of the question's metric."""

    size_bytes: int
    value: float
    warmup: int


class System(Protocol):
    """Something that can be asked a question by launching fresh processes."""

    @property
    def series(self) -> Series: ...

    def absent(self, question: Question) -> str | None:
        """None when the question can be put to it here, else why not and how to install it."""

    def run(self, question: Question) -> list[Reading]:
        """Launch afresh, measure every size, end all processes. Raises BenchError, with what they said."""
