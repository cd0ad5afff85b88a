"""`import charm4py` where this folder's parent is on sys.path: Weft's module under charm4py's name."""

import sys

import weft.charm4py

sys.modules[__name__] = weft.charm4py
