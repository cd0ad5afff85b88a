"""`weft resize`: asks a running job for another number of PEs."""

from __future__ import annotations

import argparse
import os
import socket
import sys

from weft._cli.parser import Parser

_DESCRIPTION = """\
Asks the job of the process PID, which is `weft run --on-loss restart`, `weft run --on-loss shrink` or one of
its PEs, for N PEs. The job gets them at the next weft.protect that is complete: PEs with the highest numbers
leave, or new ones come, and main begins again with what it has protected. Works on one host; PMIx, PMI and
Slurm do not permit it."""

_EPILOG = "exit code: 0 if the job will do it, 1 if it refuses, 2 if it cannot be asked"
# Its launcher answers at once.
_LIMIT_S = 10.0


def add_resize(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "resize",
        help="give a running job another number of PEs",
        usage="weft resize PID -n N",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pid", metavar="PID", type=int, help="the number of the process")
    parser.add_argument("-n", dest="num_pes", metavar="N", required=True, help="number of PEs")
    parser.set_defaults(function=_resize, parser=parser)


def _resize(options: argparse.Namespace) -> int:
    from weft.launch.command import UsageError, parse_num_pes

    try:
        num_pes = parse_num_pes(options.num_pes)
        refusal = ask(_launcher_of(options.pid), num_pes)
    except UsageError as error:
        print(f"weft resize: {error}", file=sys.stderr)
        return 2
    if refusal:
        print(f"weft resize: {refusal}", file=sys.stderr)
        return 1
    pes = f"{num_pes} PE{'' if num_pes == 1 else 's'}"
    print(f"the job of process {options.pid} has {pes} after its next weft.protect")
    return 0


def _launcher_of(pid: int) -> str:
    """The socket of the `weft run` that is the process, or whose PE the process is."""
    from weft._cli.status import environment_of
    from weft.launch.command import UsageError

    own = environment_of(pid)
    pes = (environment_of(int(entry)) for entry in os.listdir("/proc") if entry.isdigit())
    # A `weft run` that a PE has started has the variables of the outer job.
    found = next((each for each in pes if each.get("WEFT_LAUNCHER_PID") == str(pid)), own)
    if "WEFT_BOOTSTRAP" not in found or "WEFT_LAUNCHER_PID" not in found:
        raise UsageError(
            f"process {pid} is no job of yours that `weft run` has started on this host. PMIx, PMI and "
            "Slurm do not permit another number of PEs: end the job, and start it again from a checkpoint"
        )
    if found.get("WEFT_ON_LOSS") not in ("restart", "shrink"):
        raise UsageError(
            f"the job of process {pid} was not started with --on-loss restart or --on-loss shrink, and "
            "cannot begin again with another number of PEs"
        )
    return found["WEFT_BOOTSTRAP"]


def ask(path: str, num_pes: int) -> str:
    """Asks the launcher with that socket. Returns why it refuses; empty if it does not.

    Raises:
        UsageError: it does not answer.
    """
    from weft.launch.command import UsageError
    from weft.launch.frames import FrameDecoder, FrameType, ProtocolError, encode

    decoder = FrameDecoder()
    try:
        with socket.socket(socket.AF_UNIX) as launcher:
            launcher.settimeout(_LIMIT_S)
            launcher.connect(path)
            launcher.sendall(encode(FrameType.RESIZE, num_pes.to_bytes(4, "little")))
            while data := launcher.recv(4096):
                for frame in decoder.feed(data):
                    if frame.type is FrameType.RESIZE_ANSWER:
                        return frame.payload.decode(errors="replace")
                    return f"`weft run` answers: {frame.payload.decode(errors='replace')}"
    except (OSError, ProtocolError) as error:
        raise UsageError(f"`weft run` does not answer: {error}") from None
    raise UsageError("`weft run` has ended")
