"""The file of a study's trials: JSON, one object per line. The first line says which study it is.

A finished trial is a line that is on disk before the next trial begins. A study that was interrupted goes on
with the trials that its file lacks.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any

from weft_bench.errors import BenchError
from weft_bench.provenance import Provenance

FORMAT = 1


@dataclasses.dataclass(frozen=True)
class Trial:
    """One launch: `value` is in seconds, `fields` are the other fields that the program has printed."""

    group: str
    variant: str
    number: int
    value: float
    fields: dict[str, Any]
    date: str

    @property
    def key(self) -> tuple[str, str, int]:
        return self.group, self.variant, self.number


@dataclasses.dataclass(frozen=True)
class Header:
    """The first line: what is run, in which order, with which code, where and since when."""

    settings: dict[str, Any]
    seed: int
    where: Provenance

    def to_json(self) -> str:
        return json.dumps(
            {"format": FORMAT, **self.settings, "seed": self.seed, **dataclasses.asdict(self.where)}
        )


class TrialFile:
    """The trials in `path`. `header` is that of the file if it has one."""

    def __init__(self, path: Path, header: Header, *, seed_is_given: bool = False) -> None:
        """Opens `path`, or makes it.

        Raises:
            BenchError: it belongs to another study, other settings, another machine or another commit, or it
                is no such file.
        """
        self.path = path
        self.header = header
        self.trials: list[Trial] = []
        if path.is_file() and path.stat().st_size > 0:
            self._read(seed_is_given)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._append(header.to_json())

    def add(self, trial: Trial) -> None:
        """Keeps a trial that has finished."""
        self._append(json.dumps(dataclasses.asdict(trial)))
        self.trials.append(trial)

    def values(self, group: str, variant: str) -> list[float]:
        """Of all trials so far, in the order of their numbers."""
        found = [t for t in self.trials if (t.group, t.variant) == (group, variant)]
        return [trial.value for trial in sorted(found, key=lambda trial: trial.number)]

    def mean_of(self, group: str, variant: str, field: str) -> float | None:
        """Of a number that the programs print beside their time; None if a trial lacks it."""
        found = [t.fields.get(field) for t in self.trials if (t.group, t.variant) == (group, variant)]
        numbers = [number for number in found if isinstance(number, (int, float))]
        return sum(numbers) / len(numbers) if numbers and len(numbers) == len(found) else None

    def _append(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self, seed_is_given: bool) -> None:
        text = self.path.read_text(encoding="utf-8")
        *lines, rest = text.split("\n")
        if not lines:
            raise BenchError(f"{self.path} is no file of trials; give another --output")
        first = self._object(lines[0], 1)
        self._expect_same(first, seed_is_given)
        where = dataclasses.replace(self.header.where, date=str(first.get("date")))  # of the beginning
        self.header = dataclasses.replace(self.header, seed=int(first["seed"]), where=where)
        for number, line in enumerate(lines[1:], start=2):
            self._take(self._object(line, number), number)
        if rest:  # the study ended while it wrote this line
            part = self.path.with_name(self.path.name + ".part")
            part.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            part.replace(self.path)

    def _object(self, line: str, number: int) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except json.JSONDecodeError as error:
            raise BenchError(
                f"{self.path}, line {number}: not JSON ({error}); give another --output"
            ) from None
        if not isinstance(found, dict):
            raise BenchError(f"{self.path}, line {number}: no JSON object; give another --output")
        return found

    def _expect_same(self, found: dict[str, Any], seed_is_given: bool) -> None:
        expected = json.loads(self.header.to_json())
        names = ["format", *self.header.settings, "git", "host"]
        if seed_is_given or not isinstance(found.get("seed"), int):
            names.append("seed")
        different = [name for name in names if found.get(name) != expected[name]]
        if different:
            told = "; ".join(_difference(name, found.get(name), expected[name]) for name in different)
            raise BenchError(
                f"{self.path} has trials of another study, which cannot be mixed with new ones: {told}. "
                "Repeat the command of those trials to resume them, give another --output, or start "
                "anew with --fresh"
            )

    def _take(self, found: dict[str, Any], number: int) -> None:
        try:
            trial = Trial(**found)
            good = math.isfinite(trial.value) and trial.value > 0
        except TypeError:
            good = False
        if not good:
            raise BenchError(f"{self.path}, line {number}: no trial; give another --output")
        self.trials.append(trial)


def _difference(name: str, found: Any, expected: Any) -> str:
    """For people. Groups are long: the first option that differs is named."""
    if name != "groups" or not isinstance(found, list):
        return f"{name} is {found!r} there and {expected!r} here"
    for there, here in zip(found, expected, strict=False):
        if there != here:
            words, other_words = json.dumps(there), json.dumps(here)
            return f"a group is {words} there and {other_words} here"
    return f"it has {len(found)} groups, and here are {len(expected)}"
