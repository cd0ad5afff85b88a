"""`weft top`: what the PEs of a running job do now."""

from __future__ import annotations

import argparse

from weft._cli.parser import Parser

_DESCRIPTION = """\
Shows what the PEs of a running job on this host do, again and again: how busy they are, their queues, what
they move by which path, their memory. JOB is the number of the `weft run` process or of any PE; it may be
left out if only one job runs. Without a terminal, and with --once or --json, it shows one sample and ends.
Keys: s sorts by the next column, r reverses the order, w asks the job what its PEs wait for, q quits."""

_EPILOG = "exit code: 0; 1 if the job ended before the sample; 2 if it is not clear which job is meant"
_SHORTEST_S = 0.1


def add_top(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "top",
        help="show what the PEs of a running job do now",
        usage="weft top [options] [JOB]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", metavar="JOB", type=int, nargs="?", help="the number of a process of the job")
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=_interval,
        default=1.0,
        help="the time between two samples (default: 1)",
    )
    parser.add_argument("--once", action="store_true", help="show one sample and end")
    parser.add_argument("--json", action="store_true", help="print one sample as a JSON object and end")
    parser.set_defaults(function=_top, parser=parser)


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not _SHORTEST_S <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}': give {_SHORTEST_S:g} seconds or more")
    return seconds


def _top(options: argparse.Namespace) -> int:
    from weft._top.command import top

    return top(options.job, interval_s=options.interval, once=options.once, as_json=options.json)
