"""Weft itself: the measuring programs under `weft run`."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys

from weft.bench.process import capture, read_measurements
from weft.bench.programs import Programs
from weft.bench.question import Question
from weft.bench.system import Reading, Series

_CPP_US = 0.2
_PYTHON_US = 1.5


@dataclasses.dataclass(frozen=True)
class Weft:
    """One model in one language; `program` is the file name of its measuring program."""

    model: str
    language: str
    program: str
    programs: Programs
    path: str = ""

    @property
    def series(self) -> Series:
        return Series("weft", self.model, self.language, self.path)

    def absent(self, question: Question) -> str | None:
        if self.language == "python" and importlib.util.find_spec("weft._core") is None:
            return "the compiled part of weft is not here: pip install weft, or make setup in a checkout"
        if self.language == "python" and question.memory != "host":
            return f"its measuring program has no {question.memory} buffers"
        if self.programs.find(self.program) is None:
            return self.programs.advice(self.program)
        return None

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(message_us=_CPP_US if self.language == "cpp" else _PYTHON_US)
        command = [
            sys.executable,
            "-m",
            "weft",
            "run",
            "-n",
            str(question.pes),
            str(self.programs.need(self.program)),
        ]
        command += [question.bench, *(step.argument() for step in steps), "--memory", question.memory]
        return read_measurements(capture(command, self.series.label), question, steps, self.series.label)


def weft_systems(programs: Programs) -> list[Weft]:
    """Every way through Weft, from the bare machine up."""
    return [
        Weft("machine", "cpp", "machine_pingpong", programs, "tag"),
        Weft("channel", "cpp", "channel_pingpong", programs),
        Weft("messaging", "cpp", "entry_pingpong", programs),
        Weft("channel", "python", "channel_pingpong.py", programs),
        Weft("messaging", "python", "entry_pingpong.py", programs),
    ]
