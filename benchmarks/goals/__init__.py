"""Judges this project's own goals, and sets its figures beside published ones.

The measurements are those of ``weft bench`` (``benchmarks/weft_bench``). This package serves the developers
of Weft only, so it is in no wheel. Its programs are ``benchmarks/figures.py`` and
``benchmarks/published.py``.
"""
