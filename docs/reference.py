"""Writes the reference of the Python package: docs/reference.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

import pdoc

import weft._public

# pdoc reads the comments of a class in the file of its module, which must be the one that has the code.
weft._public.name_public_module = lambda module, objects: None
pdoc.pdoc("weft", output_directory=Path(sys.argv[1]))
