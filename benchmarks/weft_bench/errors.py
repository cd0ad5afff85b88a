"""The one error of the harness."""

from __future__ import annotations


class BenchError(RuntimeError):
    """A measurement could not be made; the text says which, why and what to do."""
