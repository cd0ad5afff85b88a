"""Chares: their conditions and post entries, reductions, moves and checkpoints."""
