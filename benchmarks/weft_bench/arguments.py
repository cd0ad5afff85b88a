"""Types of arguments that the command lines of `weft bench` and `weft study` share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence


def names(choices: Sequence[str]) -> Callable[[str], list[str]]:
    """The type of an argument that is some of `choices`, with commas between, or all."""

    def parse(text: str) -> list[str]:
        found = list(choices) if text == "all" else text.split(",")
        for name in found:
            if name not in choices:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(choices)}")
        return found

    return parse


def numbers(text: str) -> list[int]:
    """The type of an argument that is whole numbers of at least 1 with commas between."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not whole numbers like 1,2,4")
    return found


def number(text: str) -> int:
    """The type of an argument that is a whole number of at least 1."""
    (found,) = numbers(text) if "," not in text else [0]
    if found < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return found


def minutes(text: str) -> float:
    """The type of an argument that is a number of minutes above 0."""
    return _above_0(text, "a number of minutes above 0")


def above_0(text: str) -> float:
    """The type of an argument that is a number above 0."""
    return _above_0(text, "a number above 0")


def _above_0(text: str, wanted: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return found
