"""Measures jobs across two hosts, TCP itself, raw UCX and mpi4py on Open MPI in turn; --help says how.

The hosts are namespaces of this machine (tests/multihost/cluster.py), joined by a veth pair. So
the link has no hardware: the figures compare systems, not networks. Open MPI's mpiexec starts all but
ucx_perftest, with `--bind-to none`; the measuring programs of pairs pin their processes themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "multihost"))

import launchers  # noqa: E402
from cluster import Cluster, Host, Network, finish, missing  # noqa: E402

from weft_bench.programs import Programs  # noqa: E402
from weft_bench.provenance import provenance  # noqa: E402
from weft_bench.system_ucx import perftest  # noqa: E402

SCRIPTS = ROOT / "benchmarks" / "python"
TIMEOUT_S = 120.0
WEFT = {"WEFT_TRUSTED_NETWORK": "1"}
# Processes that share a core must give way, or they measure the kernel's time slice.
OPEN_MPI = {"OMPI_MCA_mpi_yield_when_idle": "1"}
UCX_PORT = 13337
TCP_PORT = "13338"
QUIET_SAMPLES = 10

LATENCY = "8:4000:400", "1024:4000:400", "65536:1500:150"
BANDWIDTH = "1048576:12:2", "4194304:4:1"
WINDOW = 64
COLLECTIVES = "8:1000:100", "65536:300:30", "16777216:12:2"

# size_bytes, metric, value
Figure = tuple[int, str, float]
Measurement = Callable[[Cluster], list[Figure]]


def run(cluster: Cluster, pes_per_host: int, program: Sequence[object], settings: dict[str, str]) -> str:
    command = launchers.prrte(cluster, pes_per_host, program, settings)
    return cluster.hosts[0].check(command, timeout_s=TIMEOUT_S)


def wait_until_quiet(patience_s: float) -> None:
    """Until no process but this one has run for some samples, or for that long."""
    deadline = time.monotonic() + patience_s
    quiet = 0
    while quiet < QUIET_SAMPLES and time.monotonic() < deadline:
        running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
        quiet = quiet + 1 if running <= 1 else 0
        time.sleep(0.02)


def figures_of(output: str) -> list[Figure]:
    objects = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [(one["size_bytes"], one["metric"], one["value"]) for one in objects]


def program(
    path: object, arguments: Sequence[str], settings: dict[str, str], pes_per_host: int = 1
) -> Measurement:
    command = [sys.executable, path] if str(path).endswith(".py") else [path]
    return lambda cluster: figures_of(run(cluster, pes_per_host, [*command, *arguments], settings))


def as_time(measure: Measurement) -> Measurement:
    """The programs in C++ call the time of an allreduce its latency."""
    return lambda cluster: [(size, "time_us", value) for size, _, value in measure(cluster)]


def raw_ucx(test: str, steps: Sequence[str], environment: dict[str, str]) -> Measurement:
    """ucx_perftest: the server on the second host, the client on the first one."""

    def measure(cluster: Cluster) -> list[Figure]:
        tool = perftest()
        assert tool is not None
        found: list[Figure] = []
        settings = [f"{name}={value}" for name, value in {**tool.environment, **environment}.items()]
        is_latency = test == "tag_lat"
        for step in steps:
            size, iterations, warmup = map(int, step.split(":"))
            messages = 1 if is_latency else WINDOW
            options = [
                "-t",
                test,
                "-s",
                size,
                "-n",
                iterations * messages,
                "-w",
                warmup * messages,
                "-f",
                "-v",
            ]
            options += [] if is_latency else ["-O", WINDOW]
            common = ["env", *settings, tool.path, "-p", UCX_PORT, *options]
            server = cluster.hosts[1].start([*common, "-c", 1 % len(os.sched_getaffinity(0))])
            output = connect(cluster.hosts[0], [*common, "-c", 0, cluster.hosts[1].name])
            finish(server, TIMEOUT_S)
            found.append((size, *perftest_figure(output, is_latency)))
        return found

    return measure


def tcp_itself(path: Path, steps: Sequence[str]) -> Measurement:
    """A ping-pong over one connection that polls: the least that anything over TCP takes."""

    def measure(cluster: Cluster) -> list[Figure]:
        server = cluster.hosts[1].start([path, "serve", TCP_PORT, "latency", *steps])
        client = [path, cluster.hosts[1].address, TCP_PORT, "latency", *steps]
        output = connect(cluster.hosts[0], client)
        finish(server, TIMEOUT_S)
        return figures_of(output)

    return measure


def connect(host: Host, command: Sequence[object]) -> str:
    """The client ends at once if the server does not listen yet."""
    deadline = time.monotonic() + 20
    while True:
        outcome = host.run(command, timeout_s=TIMEOUT_S)
        if outcome.exit_code == 0:
            return outcome.stdout
        if time.monotonic() > deadline:
            raise RuntimeError(f"{shlex.join(map(str, command))}: {outcome}")
        time.sleep(0.1)


def perftest_figure(output: str, is_latency: bool) -> tuple[str, float]:
    column = "overall_lat" if is_latency else "overall_bw"
    names: list[str] = []
    for line in output.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if column in fields:
            names = fields
        elif names and len(fields) == len(names):
            value = float(fields[names.index(column)])
            return ("latency_us", value) if is_latency else ("bandwidth_GBps", value * 2**20 / 1e9)
    raise RuntimeError(f"ucx_perftest gave no figure:\n{output}")


def start_up(path: Path, settings: dict[str, str], pes_per_host: int) -> Measurement:
    """From the start of mpiexec to its end."""

    def measure(cluster: Cluster) -> list[Figure]:
        begin = time.perf_counter()
        command = [sys.executable, path] if path.suffix == ".py" else [path]
        run(cluster, pes_per_host, command, settings)
        return [(0, "time_s", time.perf_counter() - begin)]

    return measure


MINIMAL_WEFT = """
import weft

async def main():
    members = weft.Group(Member)
    assert sum(await members.one.call()) == weft.num_pes()

class Member(weft.Chare):
    def one(self):
        return 1

weft.run(main)
"""
MINIMAL_MPI4PY = """
from mpi4py import MPI

assert MPI.COMM_WORLD.allreduce(1) == MPI.COMM_WORLD.Get_size()
"""


def measurements(folder: Path, parts: Sequence[str], pes_per_host: int) -> dict[tuple[str, str], Measurement]:
    """By part and system, in the order of a round."""
    programs = Programs()
    made: dict[tuple[str, str], Measurement] = {}
    if "latency" in parts:
        channel = programs.need("channel_pingpong")
        made["latency", "weft, C++ channel"] = program(channel, ["latency", *LATENCY], WEFT)
        made["latency", "ucx, tag"] = raw_ucx("tag_lat", LATENCY, {})
        made["latency", "tcp itself"] = tcp_itself(programs.need("tcp_pingpong"), LATENCY)
        made["latency", "weft, Python channel"] = program(
            SCRIPTS / "channel_pingpong.py", ["latency", *LATENCY], WEFT
        )
        made["latency", "mpi4py"] = program(SCRIPTS / "mpi4py_pingpong.py", ["latency", *LATENCY], {})
    if "bandwidth" in parts:
        channel = programs.need("channel_pingpong")
        made["bandwidth", "weft, C++ channel"] = program(channel, ["bandwidth", *BANDWIDTH], WEFT)
        made["bandwidth", "ucx, tag"] = raw_ucx("tag_bw", BANDWIDTH, {})
        made["bandwidth", "weft, Python channel"] = program(
            SCRIPTS / "channel_pingpong.py", ["bandwidth", *BANDWIDTH], WEFT
        )
        made["bandwidth", "mpi4py"] = program(SCRIPTS / "mpi4py_pingpong.py", ["bandwidth", *BANDWIDTH], {})
    for bench in ("broadcast", "allreduce"):
        for pes in (1, 2) if bench in parts else ():
            part = f"{bench}, 2 x {pes}"
            if bench == "allreduce":
                allreduce = program(programs.need("allreduce"), [bench, *COLLECTIVES], WEFT, pes)
                made[part, "weft, C++"] = as_time(allreduce)
            made[part, "weft"] = program(SCRIPTS / "weft_collectives.py", [bench, *COLLECTIVES], WEFT, pes)
            made[part, "mpi4py"] = program(
                SCRIPTS / "mpi4py_collectives.py", [bench, *COLLECTIVES], OPEN_MPI if pes > 1 else {}, pes
            )
    if "start-up" in parts:
        part = f"start-up, 2 x {pes_per_host}"
        minimal = {"weft, Python": MINIMAL_WEFT, "mpi4py": MINIMAL_MPI4PY}
        for system, text in minimal.items():
            path = folder / f"minimal_{system.partition(',')[0]}.py"
            path.write_text(text)
            made[part, system] = start_up(path, OPEN_MPI if system == "mpi4py" else WEFT, pes_per_host)
    return made


def write_records(file: Path, values: dict[tuple[str, str, int, str], list[float]]) -> None:
    where = provenance()
    with file.open("w", encoding="utf-8") as out:
        for (bench, system, size_bytes, metric), all_runs in values.items():
            record = {
                "bench": bench, "system": system, "size_bytes": size_bytes, "metric": metric,
                "median": statistics.median(all_runs), "min": min(all_runs), "max": max(all_runs),
                "runs": len(all_runs), "values": [float(f"{value:.4g}") for value in all_runs],
                "git": where.git, "host": where.host, "date": where.date,
            }  # fmt: skip
            out.write(json.dumps(record) + "\n")


def write_plot(file: Path, records: Sequence[dict[str, Any]]) -> None:
    """A part of the picture for each bench: the median of each system by size, and its least and most."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    benches = list(dict.fromkeys(record["bench"] for record in records))
    figure = Figure(figsize=(4 * len(benches), 4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    for number, bench in enumerate(benches):
        axes = figure.add_subplot(1, len(benches), number + 1)
        part = [record for record in records if record["bench"] == bench]
        sizes = sorted({record["size_bytes"] for record in part})
        for place, system in enumerate(dict.fromkeys(record["system"] for record in part)):
            found = [record for record in part if record["system"] == system]
            below = [record["median"] - record["min"] for record in found]
            above = [record["max"] - record["median"] for record in found]
            at = [sizes.index(record["size_bytes"]) + 0.12 * place for record in found]
            medians = [record["median"] for record in found]
            axes.errorbar(at, medians, [below, above], marker="o", capsize=2, linestyle="none", label=system)
        axes.set_xticks(range(len(sizes)), [f"{size} B" for size in sizes], fontsize=7)
        axes.set_yscale("log")
        axes.set_title(bench, fontsize=9)
        axes.set_ylabel(part[0]["metric"], fontsize=8)
        axes.legend(fontsize=7)
    figure.savefig(file, format="png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="rounds; each system is launched once in each")
    parser.add_argument("--json", type=Path, required=True, help="the file of records")
    parser.add_argument(
        "--only", default="latency,bandwidth,broadcast,allreduce,start-up", help="parts, with commas"
    )
    parser.add_argument("--plot", type=Path, help="draw the records; --runs 0 measures nothing")
    parser.add_argument(
        "--start-up-pes", type=int, default=8, help="PEs of a host when the start is measured"
    )
    parser.add_argument(
        "--patience", type=float, default=0, help="seconds to wait for a quiet machine each time"
    )
    arguments = parser.parse_args()
    if why := missing():
        print(f"test hosts cannot be made here: {why}", file=sys.stderr)
        return 1
    values: dict[tuple[str, str, int, str], list[float]] = {}
    with Cluster(2, networks=[Network(0, is_direct=True)]) as cluster:
        todo = list(measurements(cluster.folder, arguments.only.split(","), arguments.start_up_pes).items())
        for number in range(arguments.runs):
            # The order is reversed from round to round, so that none is always behind the same one.
            for (bench, system), measure in todo if number % 2 == 0 else reversed(todo):
                wait_until_quiet(arguments.patience)
                for size_bytes, metric, value in measure(cluster):
                    values.setdefault((bench, system, size_bytes, metric), []).append(value)
                    print(
                        f"{number} {bench:20} {system:22} {size_bytes:9} {value:12.4g} {metric}", flush=True
                    )
            write_records(arguments.json, values)
    if arguments.plot is not None:
        lines = arguments.json.read_text(encoding="utf-8").splitlines()
        write_plot(arguments.plot, [json.loads(line) for line in lines])
    return 0


if __name__ == "__main__":
    sys.exit(main())
