"""The table of all functions of the MPI 5.0 standard ABI: reads mpi/functions/*.txt.

An entry is one prototype in C, without `int` when that is the result; it may go on in indented lines. Some
words stand for a type that depends on the form of the function:

    word                 small form, MPI_X                 large form, MPI_X_c
    COUNT                int                               MPI_Count
    DISPLACEMENT         int                               MPI_Aint
    ADDRESS              MPI_Aint                          MPI_Count
    USER_FUNCTION        MPI_User_function                 MPI_User_function_c
    CONVERSION_FUNCTION  MPI_Datarep_conversion_function   MPI_Datarep_conversion_function_c
    LARGE_ONLY ...       the parameter does not exist      the parameter without the word

A function has a large form if one of these words is in its entry. `deprecated` after an entry is a note. An
array of one of these types whose length the small form must know has it in brackets: another parameter, or a
function of mpi/src/communication/lengths.h.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

# word: (type in the small form, type in the large form)
VARYING = {
    "COUNT": ("int", "MPI_Count"),
    "DISPLACEMENT": ("int", "MPI_Aint"),
    "ADDRESS": ("MPI_Aint", "MPI_Count"),
    "USER_FUNCTION": ("MPI_User_function", "MPI_User_function_c"),
    "CONVERSION_FUNCTION": ("MPI_Datarep_conversion_function", "MPI_Datarep_conversion_function_c"),
}
ENTRY = re.compile(
    r"(?:(?P<result>\w+) )?(?P<name>MPI_\w+)\((?P<parameters>[^()]*)\)(?P<deprecated> deprecated)?"
)
PARAMETER = re.compile(
    r"(?P<only>LARGE_ONLY )?(?P<const>const )?(?P<word>\w+)(?P<stars>\**) (?P<name>\w+)(?P<array>(\[\w*\])*)"
)
LENGTH = re.compile(r"\[([a-z_]+)\]")


@dataclass(frozen=True)
class Parameter:
    name: str
    word: str  # a type of C, or a key of VARYING
    const: bool
    stars: str
    array: str  # "", "[]" or "[][3]"
    length: str  # of the array, "" if it is not stated
    large_only: bool

    @property
    def varies(self) -> bool:
        return self.word in VARYING or self.large_only

    def type_name(self, large: bool) -> str:
        return VARYING.get(self.word, (self.word, self.word))[large]

    def declare(self, large: bool) -> str:
        if self.name == "...":
            return self.name
        const = "const " if self.const else ""
        return f"{const}{self.type_name(large)}{self.stars} {self.name}{self.array}"

    def declare_unnamed(self, large: bool) -> str:
        return (
            self.declare(large).replace(f" {self.name}", " ", 1).rstrip() if self.name != "..." else self.name
        )


@dataclass(frozen=True)
class Function:
    name: str  # of the small form
    result: str
    parameters: tuple[Parameter, ...]
    topic: str
    deprecated: bool

    @property
    def has_large_form(self) -> bool:
        return any(parameter.varies for parameter in self.parameters)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, f"{self.name}_c") if self.has_large_form else (self.name,)

    def parameters_of(self, large: bool) -> list[Parameter]:
        return [parameter for parameter in self.parameters if large or not parameter.large_only]

    def prototype(self, large: bool, prefix: str = "") -> str:
        declared = ", ".join(parameter.declare(large) for parameter in self.parameters_of(large))
        return f"{self.result} {prefix}{self.name}{'_c' if large else ''}({declared or 'void'})"


@dataclass(frozen=True)
class Topic:
    name: str  # of the file
    title: str
    functions: tuple[Function, ...]


def parse_parameter(text: str, place: str) -> Parameter:
    if text == "...":
        return Parameter("...", "", False, "", "", "", False)
    match = PARAMETER.fullmatch(text)
    if not match:
        raise SystemExit(f"{place}: {text!r} is no parameter; write it as `const TYPE* name[]`")
    return Parameter(
        match["name"],
        match["word"],
        bool(match["const"]),
        match["stars"],
        LENGTH.sub("[]", match["array"]),
        length[1] if (length := LENGTH.match(match["array"])) else "",
        bool(match["only"]),
    )


def parse_entry(text: str, topic: str, place: str) -> Function:
    match = ENTRY.fullmatch(text)
    if not match:
        raise SystemExit(f"{place}: {text!r} is no entry; write it as `MPI_Name(TYPE name, ...)`")
    parameters = [part for part in match["parameters"].split(", ") if part]
    return Function(
        match["name"],
        match["result"] or "int",
        tuple(parse_parameter(part, place) for part in parameters),
        topic,
        bool(match["deprecated"]),
    )


def read_topic(path: Path) -> Topic:
    title, *lines = path.read_text(encoding="utf-8").splitlines()
    entries: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 2):
        if line.startswith("    ") and entries:
            entries[-1] = (entries[-1][0], f"{entries[-1][1]} {line.strip()}")
        elif line:
            entries.append((number, line))
    functions = [parse_entry(text, path.stem, f"{path}:{number}") for number, text in entries]
    return Topic(path.stem, title.removeprefix("# "), tuple(functions))


def read_table(folder: Path) -> list[Topic]:
    return [read_topic(path) for path in sorted(folder.glob("*.txt"))]
