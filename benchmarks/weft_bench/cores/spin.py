"""Whether processes that compute at once have a core each: spin.py PES SECONDS.

Each process stays on the core of its PE and counts for that long: first one alone, then PES at once. Prints
{"alone": count, "together": [count, ...]}. A script that imports nothing of the package: it starts soon.
"""

import json
import os
import sys
import time


def count_until(end_s: float) -> int:
    """How far one gets."""
    count = 0
    while time.perf_counter() < end_s:
        count += 1
    return count


def spin(pes: int, seconds: float) -> list[int]:
    """The counts of so many processes, which begin at once."""
    cores = sorted(os.sched_getaffinity(0))
    start_s = time.perf_counter() + 0.02 + 0.002 * pes
    ends = []
    for pe in range(pes):
        read_end, write_end = os.pipe()
        if os.fork() == 0:
            os.sched_setaffinity(0, {cores[pe % len(cores)]})
            count_until(start_s)
            os.write(write_end, str(count_until(start_s + seconds)).encode())
            os._exit(0)
        os.close(write_end)
        ends.append(read_end)
    counts = []
    for end in ends:
        with os.fdopen(end) as pipe:
            counts.append(int(pipe.read()))
        os.wait()
    return counts


if __name__ == "__main__":
    number, limit_s = int(sys.argv[1]), float(sys.argv[2])
    print(json.dumps({"alone": spin(1, limit_s)[0], "together": spin(number, limit_s)}))
