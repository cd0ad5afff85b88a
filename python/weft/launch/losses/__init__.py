"""Losses of PEs that a job outlives."""
