"""`weft top` and `weft run --metrics`: what the PEs do now, from the pages that they keep.

`pages` finds and reads the pages of this host, `hosts` asks for those of other hosts, `samples` makes shares
and rates of two readings, `view` and `command` are the live view, `metrics` is the same for Prometheus.
"""
