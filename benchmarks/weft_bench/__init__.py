"""``weft bench``: what a message costs, beside the systems that people would use instead.

A *question* (latency, bandwidth, rate) is put to several *systems* in turn, A, B, C, A, B, C, ..., each
time to freshly launched processes; the median, minimum and maximum of the runs become one *record* per
system and message size. Records are printed as a table, written as JSON lines and drawn.

Nothing here needs the compiled part of Weft: the measuring programs are separate processes.
"""
