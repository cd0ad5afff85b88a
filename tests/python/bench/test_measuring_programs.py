"""Every measuring program answers its question; the figure's size is not the matter here."""

import json
import subprocess
import sys

import pytest

from weft_bench.programs import Programs
from weft_bench.question import Question, Step
from weft_bench.system_charm import Charm
from weft_bench.system_mpi import Mpi
from weft_bench.system_pgas import MpiRma

_PING_PONG = [("latency", "latency_us"), ("bandwidth", "bandwidth_GBps"), ("rate", "rate_Mps")]
_SINGLE = [
    ("local_entry_rate", "rate", "rate_Mps", 1),
    ("array_startup", "startup", "time_s", 2),
    ("chare_memory", "memory", "memory_bytes", 1),
    ("oversubscribed_pingpong", "latency", "latency_us", 3),
]


def figures(program, pes, *arguments):
    """What `program` prints, by metric and size."""
    command = [sys.executable, "-m", "weft", "run", "-n", str(pes), str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return {(figure["metric"], figure["size_bytes"]): figure["value"] for figure in records_of(done.stdout)}


def records_of(output):
    """The lines of JSON. UCX prints warnings among them."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


@pytest.mark.parametrize(("bench", "metric"), _PING_PONG)
@pytest.mark.parametrize(
    "program", ["machine_pingpong", "channel_pingpong", "entry_pingpong", "vector_pingpong"]
)
def test_ping_pong_in_cpp(build_folder, program, bench, metric):
    # Above and below what is sent eagerly, and the largest with no power of two in it.
    steps = ["0:3:1", "8:3:1", "100000:3:1"]
    found = figures(build_folder / "benchmarks" / program, 2, bench, *steps)
    assert set(found) == {(metric, 0), (metric, 8), (metric, 100000)}
    assert all(value > 0 for (_, size), value in found.items() if size > 0)


@pytest.mark.parametrize(
    "program",
    ["machine_pingpong", "channel_pingpong", "entry_pingpong", "vector_pingpong", "payload_pingpong"],
)
def test_windows_of_distinct_buffers_in_cpp(build_folder, program):
    # Fewer buffers than messages of a window, and more.
    found = figures(build_folder / "benchmarks" / program, 2, "bandwidth", "1000:3:1:3", "100000:3:1:100")
    assert set(found) == {("bandwidth_GBps", 1000), ("bandwidth_GBps", 100000)}


@pytest.mark.parametrize("program", ["channel_pingpong.py", "entry_pingpong.py", "payload_pingpong.py"])
def test_windows_of_distinct_buffers_in_python(python_programs, program):
    found = figures(python_programs / program, 2, "bandwidth", "1000:3:1:3", "100000:3:1:100")
    assert set(found) == {("bandwidth_GBps", 1000), ("bandwidth_GBps", 100000)}


@pytest.mark.parametrize("way", ["tag", "tag-with-error-handling"])
def test_windows_through_ucx_alone(build_folder, way):
    command = [build_folder / "benchmarks" / "raw_ucx", "bandwidth", "0:3:1", "100000:3:1:100", "--way", way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert [record["size_bytes"] for record in records_of(done.stdout)] == [0, 100000]


@pytest.mark.parametrize("way", ["single", "aggregated", "direct", "grid"])
def test_rates_of_calls_in_cpp(build_folder, way):
    arguments = ["--way", way, "--calls", "2000", "--chares", "10", "--runs", "2"]
    assert figures(build_folder / "benchmarks" / "call_rate", 4, *arguments)["rate_Mps", 8] > 0


def test_another_way_of_calls_is_refused(build_folder):
    command = [build_folder / "benchmarks" / "call_rate", "--way", "aggregate"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 2
    assert "--way single|aggregated|direct|grid" in done.stderr


@pytest.mark.parametrize("way", ["single", "aggregated", "elements"])
def test_rates_of_calls_in_python(python_programs, way):
    arguments = ["--way", way, "--calls", "500", "--chares", "10", "--runs", "2"]
    assert figures(python_programs / "call_rate.py", 2, *arguments)["rate_Mps", 8] > 0


_TABLES = {
    "random_access": (["--log2-words", "12", "--chares", "2", "--look-ahead", "100"], ("rate_GUPS", 8)),
    "histogram": (["--values", "3000", "--chares", "2", "--bins", "10", "--runs", "2"], ("rate_Mps", 4)),
    "index_gather": (["--reads", "3000", "--chares", "2", "--words", "10", "--runs", "2"], ("rate_Mps", 8)),
    "breadth_first": (["--scale", "8", "--chares", "3", "--runs", "3"], ("rate_MTEPS", 8)),
}


@pytest.mark.parametrize("pes", [1, 3])
@pytest.mark.parametrize("way", ["single", "aggregated"])
@pytest.mark.parametrize("program", _TABLES)
def test_programs_of_many_small_calls(build_folder, program, way, pes):
    # Each of them compares all that it has computed with what it must be.
    arguments, figure = _TABLES[program]
    found = figures(build_folder / "benchmarks" / program, pes, "--way", way, *arguments)
    assert list(found) == [figure]
    assert found[figure] > 0


@pytest.mark.parametrize("look_ahead", ["4", "5", "1000000"])
def test_random_access_looks_ahead_by_any_number(build_folder, look_ahead):
    # A round of one update, and one of all updates of a PE.
    arguments = ["--log2-words", "10", "--look-ahead", look_ahead]
    assert figures(build_folder / "benchmarks" / "random_access", 2, *arguments)["rate_GUPS", 8] > 0


def test_a_graph_without_edges_is_refused(build_folder):
    program = build_folder / "benchmarks" / "breadth_first"
    arguments = ["--scale", "1", "--edges-per-vertex", "1"]
    command = [sys.executable, "-m", "weft", "run", "-n", "1", str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 2
    assert "benchmark: all edges of the graph join a vertex to itself: raise --scale" in done.stderr


@pytest.mark.parametrize("pes", [1, 3])
@pytest.mark.parametrize("way", ["single", "aggregated"])
@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("histogram.py", ["--values", "500", "--bins", "10"]),
        ("index_gather.py", ["--reads", "500", "--words", "10"]),
    ],
)
def test_programs_of_many_small_calls_in_python(python_programs, program, arguments, way, pes):
    arguments = ["--way", way, *arguments, "--chares", "2", "--runs", "2"]
    assert figures(python_programs / program, pes, *arguments)["rate_Mps", 8] > 0


@pytest.mark.parametrize("program", _TABLES)
@pytest.mark.parametrize(
    "arguments", [["--chares", "0"], ["--chares", "two"], ["--chares"], ["--chare", "2"], ["--way", "2"]]
)
def test_other_options_are_refused_with_the_usage(build_folder, program, arguments):
    command = [build_folder / "benchmarks" / program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 2
    assert done.stderr.startswith(f"benchmark: {program} [--way single|aggregated] [--")


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_random_access_of_mpi(build_folder, library):
    mpi = Mpi(library, Programs(build_folder / "benchmarks"))
    if (reason := mpi.absent(Question("latency", (8,)))) is not None:
        pytest.skip(f"NOT TESTED: {library}: {reason}")
    program = build_folder / "benchmarks" / f"{library}_random_access"
    command = [*(mpi.launcher(2) or []), str(program), "--log2-words", "12", "--look-ahead", "100"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    (record,) = records_of(done.stdout)
    assert record["value"] > 0


def test_random_access_of_wefts_mpi(build_folder):
    program = build_folder / "benchmarks" / "weft_mpi_random_access"
    assert figures(program, 4, "--log2-words", "12", "--look-ahead", "100")["rate_GUPS", 8] > 0


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
@pytest.mark.parametrize(
    ("question", "metric"),
    [
        (Question("latency", (8, 100000)), "latency_us"),
        (Question("bandwidth", (100000,), distinct=True), "bandwidth_GBps"),
        (Question("allreduce", (8,), pes=2), "latency_us"),
    ],
)
def test_mpi_answers(build_folder, monkeypatch, library, question, metric):
    system = Mpi(library, Programs(build_folder / "benchmarks"))
    if (reason := system.absent(question)) is not None:
        pytest.skip(f"NOT TESTED: {library}: {reason}")
    monkeypatch.setattr(Question, "steps", lambda self, _: [Step(size, 20, 2, 3) for size in self.sizes])
    readings = system.run(question)
    assert [reading.size_bytes for reading in readings] == list(question.sizes)
    assert all(reading.value > 0 for reading in readings)


@pytest.mark.parametrize("pes", [1, 2, 5])
def test_allreduce(build_folder, pes):
    found = figures(build_folder / "benchmarks" / "allreduce", pes, "allreduce", "8:50:2")
    assert list(found) == [("latency_us", 8)]


@pytest.mark.parametrize(
    ("question", "way"),
    [
        *((Question("latency", (8, 100000)), way) for way in ("array", "vector", "nocopy")),
        *((Question("bandwidth", (100000,), distinct=True), way) for way in ("array", "vector", "nocopy")),
        (Question("reduction", (1000,)), "array"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.bench,
)
def test_charm_answers(build_folder, monkeypatch, question, way):
    system = Charm(way, Programs(build_folder / "benchmarks"))
    if (reason := system.absent(question)) is not None:
        pytest.skip(f"NOT TESTED: {system.series.label}: {reason}")
    buffers = 3 if question.distinct else 1
    monkeypatch.setattr(
        Question, "steps", lambda self, *_: [Step(size, 20, 2, buffers) for size in self.sizes]
    )
    readings = system.run(question)
    assert [reading.size_bytes for reading in readings] == list(question.sizes)
    assert all(reading.value > 0 for reading in readings)


@pytest.mark.parametrize("pes", [1, 2])
def test_a_reduction_over_an_array(build_folder, pes):
    found = figures(build_folder / "benchmarks" / "collective_times", pes, "reduction", "1000:3:1")
    assert found["time_s", 1000] > 0


def test_the_first_all_to_all(build_folder):
    found = figures(build_folder / "benchmarks" / "collective_times", 2, "all_to_all")
    assert set(found) == {("first_all_to_all_ms", 4), ("pss_per_pe_MiB", 0)}


def test_a_message_to_a_busy_pe(build_folder):
    found = figures(build_folder / "benchmarks" / "busy_receiver", 2, "busy", "1000000:1:0")
    assert found["latency_us", 1000000] > 0


@pytest.mark.parametrize(("bench", "metric"), _PING_PONG)
def test_ping_pong_of_active_messages(build_folder, bench, metric):
    program = build_folder / "benchmarks" / "machine_pingpong"
    found = figures(program, 2, bench, "8:3:1", "4194304:3:1", "--way", "am")
    assert set(found) == {(metric, 8), (metric, 4194304)}


@pytest.mark.parametrize(("bench", "metric"), _PING_PONG)
@pytest.mark.parametrize("program", ["machine_pingpong", "channel_pingpong", "peer_copy"])
def test_ping_pong_of_device_memory(build_folder, program, bench, metric):
    pes = 1 if program == "peer_copy" else 2
    steps = ["8:3:1", "100000:3:1"]
    found = figures(build_folder / "benchmarks" / program, pes, bench, *steps, "--memory", "emulated")
    assert set(found) == {(metric, 8), (metric, 100000)}
    assert all(value > 0 for value in found.values())


@pytest.mark.parametrize("bench", ["pgas_latency", "pgas_flood", "memspeed"])
def test_plain_copies_one_way(build_folder, bench):
    program = build_folder / "benchmarks" / "peer_copy"
    found = figures(program, 1, bench, "8:3:1", "100000:3:1", "--memory", "emulated")
    assert list(found) == [(Question(bench, (8,)).metric, 8), (Question(bench, (8,)).metric, 100000)]


@pytest.mark.parametrize("peer_memory", ["on", "off"])
@pytest.mark.parametrize("language", ["cpp", "python"])
def test_channels_of_device_memory_take_either_path(
    build_folder, python_programs, monkeypatch, language, peer_memory
):
    monkeypatch.setenv("WEFT_PEER_MEMORY", peer_memory)
    cpp = language == "cpp"
    program = build_folder / "benchmarks/channel_pingpong" if cpp else python_programs / "channel_pingpong.py"
    command = [sys.executable, "-m", "weft", "run", "-n", "2", "--stats", str(program)]
    arguments = ["latency", "8:20:1", "--memory", "emulated"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert ("peer-mapped" in done.stderr) == (peer_memory == "on"), done.stderr


@pytest.mark.parametrize("memory", ["host", "emulated"])
@pytest.mark.parametrize("setting", ["MESSAGING_PATH=tagged", "MESSAGING_PATH=active", "STAGING=host"])
@pytest.mark.parametrize("language", ["cpp", "python"])
def test_payloads_take_every_path(build_folder, python_programs, monkeypatch, language, setting, memory):
    name, value = setting.split("=")
    monkeypatch.setenv(f"WEFT_{name}", value)
    cpp = language == "cpp"
    program = build_folder / "benchmarks/payload_pingpong" if cpp else python_programs / "payload_pingpong.py"
    for bench, metric in _PING_PONG[:2]:
        found = figures(program, 2, bench, "8:3:1", "100000:3:1", "--memory", memory)
        assert set(found) == {(metric, 8), (metric, 100000)}


@pytest.mark.parametrize(("program", "bench", "metric", "pes"), _SINGLE)
def test_the_others_in_cpp(build_folder, program, bench, metric, pes):
    size = 0 if bench in ("startup", "memory") else 8
    found = figures(build_folder / "benchmarks" / program, pes, bench, f"{size}:300:1")
    assert list(found) == [(metric, size)]
    assert found[metric, size] > 0


@pytest.mark.parametrize(("bench", "metric"), _PING_PONG)
@pytest.mark.parametrize("program", ["channel_pingpong.py", "entry_pingpong.py"])
def test_ping_pong_in_python(python_programs, program, bench, metric):
    found = figures(python_programs / program, 2, bench, "0:3:1", "8:3:1", "100000:3:1")
    assert set(found) == {(metric, 0), (metric, 8), (metric, 100000)}


@pytest.mark.parametrize(("bench", "metric"), _PING_PONG)
@pytest.mark.parametrize("program", ["channel_pingpong.py", "payload_pingpong.py"])
def test_ping_pong_of_device_memory_in_python(python_programs, program, bench, metric):
    program = python_programs / program
    found = figures(program, 2, bench, "0:3:1", "8:3:1", "100000:3:1", "--memory", "emulated")
    assert set(found) == {(metric, 0), (metric, 8), (metric, 100000)}


def test_session_times(python_programs):
    command = [sys.executable, str(python_programs / "session_times.py"), "2", "1", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    records = records_of(done.stdout)
    metrics = [(record["metric"], record["pes"], record["runs"]) for record in records]
    assert metrics == [("first_result", 2, 1), ("cpu_of_first_result", 2, 1), ("call", 2, 3)]


def test_chare_creation(python_programs):
    assert list(figures(python_programs / "chare_creation.py", 1)) == [("time_s", 0)]


@pytest.mark.parametrize("system", ["weft", "multiprocessing", "concurrent.futures"])
@pytest.mark.parametrize("chunk", [[], ["--chunksize", "10"]], ids=["default", "chunks"])
def test_pool_tasks(python_programs, system, chunk):
    # Those of Python's library run on PE 0 alone, without a job.
    arguments = ["--system", system, "--tasks", "100", *chunk]
    assert list(figures(python_programs / "pool_tasks.py", 1, *arguments)) == [("rate_Mps", 0)]


@pytest.mark.parametrize(
    "arguments",
    [
        ["speed", "8:1:1"],
        ["latency", "8:1"],
        ["latency", "8:1:1:0"],
        ["latency", "8:1:1:1:1"],
        ["latency", "-8:1:1"],
        ["latency", "8:1:"],
        ["latency"],
        ["latency", "8:1:1", "--memory", "core"],
        ["latency", "8:1:1", "--devices", "0"],
        ["latency", "8:1:1", "--devices", "0,-1"],
        ["latency", "8:1:1", "--devices", ",1"],
    ],
)
def test_a_wrong_command_line_ends_with_a_sentence(build_folder, arguments):
    program = build_folder / "benchmarks" / "machine_pingpong"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("benchmark: ")


_ONE_SIDED = [
    ("pgas_latency", "latency_us"),
    ("pgas_flood", "bandwidth_GBps"),
    ("pgas_flood_both", "bandwidth_GBps"),
    ("memspeed", "bandwidth_GBps"),
]


@pytest.mark.parametrize("mapping", ["on", "off"])
@pytest.mark.parametrize(("bench", "metric"), _ONE_SIDED)
@pytest.mark.parametrize(
    "way",
    [
        "put,host-host,remote",
        "get,host-host,remote",
        "put,host-device,remote",
        "get,device-host,remote",
        "put,device-device,local",
    ],
)
def test_one_sided_operations(build_folder, monkeypatch, bench, metric, way, mapping):
    monkeypatch.setenv("WEFT_PGAS_MAPPING", mapping)
    program = build_folder / "benchmarks" / "pgas_copy"
    steps = ["8:3:1", "100000:2:1:3"]
    found = figures(program, 2, bench, *steps, "--way", way, "--memory", "emulated")
    assert set(found) == {(metric, 8), (metric, 100000)}
    assert all(value > 0 for value in found.values())


@pytest.mark.parametrize("mapping", ["on", "off"])
@pytest.mark.parametrize("operation", ["put_value", "get_value"])
def test_one_sided_values(build_folder, monkeypatch, operation, mapping):
    monkeypatch.setenv("WEFT_PGAS_MAPPING", mapping)
    program = build_folder / "benchmarks" / "pgas_copy"
    found = figures(program, 2, "pgas_latency", "8:30:1", "--way", f"{operation},host-host,remote")
    assert set(found) == {("latency_us", 8)}


@pytest.mark.parametrize("mapping", ["on", "off"])
@pytest.mark.parametrize("way", ["alone", "contended", "owned"])
def test_fetch_add(build_folder, monkeypatch, way, mapping):
    monkeypatch.setenv("WEFT_PGAS_MAPPING", mapping)
    found = figures(
        build_folder / "benchmarks" / "pgas_fetch_add", 2, "pgas_fetch_add", "8:300:10", "--way", way
    )
    assert set(found) == {("latency_us", 8)}


@pytest.mark.parametrize(
    "way", ["put", "get", "put-allocated", "get-with-error-handling", "put-allocated-with-error-handling"]
)
@pytest.mark.parametrize("bench", ["pgas_latency", "pgas_flood", "pgas_flood_both"])
def test_one_sided_operations_through_ucx_alone(build_folder, bench, way):
    command = [build_folder / "benchmarks" / "raw_ucx_rma", bench, "8:3:1", "100000:3:1:10", "--way", way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert [record["size_bytes"] for record in records_of(done.stdout)] == [8, 100000]


@pytest.mark.parametrize("operation", ["put", "get", "fetch-add"])
@pytest.mark.parametrize("language", ["cpp", "python"])
@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_one_sided_operations_of_mpi(build_folder, monkeypatch, library, language, operation):
    system = MpiRma(operation, library, language, Programs(build_folder / "benchmarks"))
    sizes, bench = ((8,), "pgas_fetch_add") if operation == "fetch-add" else ((8, 100000), "pgas_flood")
    question = Question(bench, sizes)
    if (reason := system.absent(question)) is not None:
        pytest.skip(f"NOT TESTED: {system.series.label}: {reason}")
    monkeypatch.setattr(Question, "steps", lambda self, *_: [Step(size, 3, 1, 3) for size in self.sizes])
    readings = system.run(question)
    assert [reading.size_bytes for reading in readings] == list(sizes)
    assert all(reading.value > 0 for reading in readings)


@pytest.mark.parametrize(("bench", "metric"), _ONE_SIDED)
@pytest.mark.parametrize("memory", ["host", "emulated"])
@pytest.mark.parametrize("way", ["put", "get"])
def test_windows_of_wefts_mpi(build_folder, bench, metric, memory, way):
    program = build_folder / "benchmarks" / "weft_mpi_rma"
    steps = ["8:3:1", "100000:2:1:3"]
    found = figures(program, 2, bench, *steps, "--way", way, "--memory", memory)
    assert set(found) == {(metric, 8), (metric, 100000)}


@pytest.mark.parametrize("way", ["tasks", "calls"])
def test_service_calls(python_programs, way):
    wanted = {("latency_us", 8), ("rate_Mps", 8)}
    arguments = ("--way", way, "--count", "100", "--runs", "1")
    assert set(figures(python_programs / "service_calls.py", 1, *arguments)) == wanted
