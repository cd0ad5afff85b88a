"""Judges this project's own goals, and sets its figures beside published ones.

The measurements are those of ``weft bench`` (``python/weft/bench``), which every user has. This package
serves the developers of Weft only, so it is not in the wheel. Its programs are ``benchmarks/figures.py`` and
``benchmarks/published.py``.
"""
