"""charm4py's launcher, as `weft run` does its work."""
