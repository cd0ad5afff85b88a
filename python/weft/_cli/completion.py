"""Completion in shells, by argcomplete: the shell runs `weft` with the line so far in COMP_LINE."""

from __future__ import annotations

import os

from weft._cli.parser import Parser


def words_to_complete() -> list[str] | None:
    """The words behind `weft` on the line that a shell wants to complete; None if this is no such call."""
    return os.environ.get("COMP_LINE", "").split()[1:] if "_ARGCOMPLETE" in os.environ else None


def complete(parser: Parser) -> None:
    """Answers the shell and ends this process; returns at once if no shell asks."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    try:
        import argcomplete
    except ImportError:
        os._exit(1)  # the shell then completes names of files
    argcomplete.autocomplete(parser)
