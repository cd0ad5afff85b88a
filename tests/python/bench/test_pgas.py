"""Benches of one-sided operations: what is asked of whom, the commands, and what comes from floods."""

import argparse
import dataclasses

import pytest

from goals.pgas_figures import FETCH_ADD, LATENCY, PGAS_GOALS, device_pgas_goals, judge_pgas
from weft_bench import cli, pgas, system_pgas
from weft_bench.errors import BenchError
from weft_bench.pgas import flood_points, half_size, questions
from weft_bench.programs import Programs
from weft_bench.question import FLOOD_WINDOW, Question, buffers_beyond_cache
from weft_bench.record import METRICS, read_records
from weft_bench.system_pgas import MpiRma, UcxRma, WeftPgas, WeftWindow, one_sided_systems
from weft_bench.system_ucx import WEFT_SETTINGS, Tool


def parsed(*arguments):
    parser = argparse.ArgumentParser(prog="weft")
    cli.add_parser(parser.add_subparsers(required=True))
    return parser.parse_args(["bench", *map(str, arguments)])


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Programs that are empty files, and the commands and environments of their launches."""
    names = ("pgas_copy", "pgas_fetch_add", "raw_ucx_rma", "openmpi_rma", "mpich_rma", "core_distance")
    for name in (*names, "weft_mpi_rma"):
        (tmp_path / name).touch()
    taken = []

    def capture(command, what, environment=None, timeout_s=0):
        taken.append((list(map(str, command)), dict(environment or {})))
        bench = next(word for word in command if str(word).startswith(("pgas_", "memspeed")))
        metric = Question(bench, (8,)).metric
        sizes = [int(word.split(":")[0]) for word in command if str(word).count(":") >= 2]
        return "".join(f'{{"size_bytes": {s}, "metric": "{metric}", "value": 2.0}}\n' for s in sizes)

    monkeypatch.setattr(system_pgas, "capture", capture)
    monkeypatch.setattr(system_pgas, "perftest", lambda: Tool(tmp_path, {"LD_LIBRARY_PATH": "there"}))
    monkeypatch.setattr(
        system_pgas.Mpi, "launcher", lambda self, pes: [f"{self.library}-mpiexec", "-n", str(pes)]
    )
    return Programs(tmp_path), taken


def test_weft_is_told_the_operation_and_the_way(commands):
    programs, taken = commands
    (reading,) = WeftPgas("put", "host-device", "remote", "through UCX", programs).run(
        Question("pgas_flood", (64,), "emulated")
    )
    assert reading.value == 2.0
    command, environment = taken[0]
    assert command[command.index("pgas_flood") + 2 :] == [
        "--way",
        "put,host-device,remote",
        "--memory",
        "emulated",
    ]
    assert environment["WEFT_PGAS_MAPPING"] == "off"
    WeftPgas("fetch-add owned", "host", "remote", "mapped", programs).run(FETCH_ADD)
    command, environment = taken[1]
    assert any(word.endswith("pgas_fetch_add") for word in command[:-1])
    assert command[command.index("--way") + 1] == "owned"
    assert environment["WEFT_PGAS_MAPPING"] == "on"


def test_staged_is_through_host_memory_of_both(commands):
    programs, taken = commands
    WeftPgas("get", "device-device", "remote", "staged", programs).run(
        Question("memspeed", (64,), "emulated")
    )
    _, environment = taken[0]
    assert (environment["WEFT_PGAS_MAPPING"], environment["WEFT_STAGING"]) == ("off", "host")


def test_raw_ucx_is_told_the_devices(commands):
    programs, taken = commands
    question = Question("memspeed", (1 << 20,), "cuda", devices=(1, 0))
    system = UcxRma("get", WEFT_SETTINGS, False, programs, "device-host")
    assert system.run(question)[0].value == 2.0
    command, _ = taken[0]
    assert command[command.index("memspeed") + 1 :][:4] == ["--memory", "cuda", "--devices", "1,0"]
    assert command[-2:] == ["--way", "get-with-error-handling,device-host"]


def test_a_value_has_eight_bytes(commands):
    programs, taken = commands
    readings = WeftPgas("put value", "host-host", "remote", "mapped", programs).run(
        Question("pgas_latency", (8, 64, 4096))
    )
    assert [reading.size_bytes for reading in readings] == [8]
    assert taken[0][0][-3] == "put_value,host-host,remote"


@pytest.mark.parametrize(
    ("settings", "is_allocated", "way"),
    [
        (WEFT_SETTINGS, False, "get-with-error-handling"),
        (WEFT_SETTINGS, True, "get-allocated-with-error-handling"),
    ],
)
def test_raw_ucx_is_told_the_memory_and_the_settings(commands, settings, is_allocated, way):
    programs, taken = commands
    UcxRma("get", settings, is_allocated, programs).run(LATENCY)
    command, environment = taken[0]
    assert command[-2:] == ["--way", way]
    assert environment == {"LD_LIBRARY_PATH": "there", **dict(settings.environment)}


def test_each_mpi_is_started_by_its_own_launcher(commands, python_programs):
    _, taken = commands
    programs = commands[0]
    MpiRma("put", "mpich", "cpp", programs).run(LATENCY)
    MpiRma("get", "mpich", "python", programs).run(LATENCY)
    assert taken[0][0][0] == taken[1][0][0] == "mpich-mpiexec"
    assert taken[0][0][3].endswith("mpich_rma")
    assert taken[0][1] == {}
    assert any(word.endswith("mpi4py_rma.py") for word in taken[1][0])
    assert taken[1][1]["MPI4PY_MPIABI"] == "mpich"


def test_windows_of_wefts_mpi_are_told_the_memory(commands):
    programs, taken = commands
    window = WeftWindow("get", "device-device", programs)
    assert window.absent(LATENCY) is None
    window.run(Question("memspeed", (64,), "cuda", devices=(0, 1)))
    command, environment = taken[0]
    assert command[command.index("memspeed") + 2 :] == ["--way", "get", "--memory", "cuda"]
    assert environment == {"WEFT_GPUS": "0,1"}


def test_what_a_system_cannot_measure_is_said(commands):
    programs, _ = commands
    cuda = Question("pgas_flood", (64,), "cuda")
    emulated = Question("pgas_flood", (64,), "emulated")
    assert "kind cuda only" in UcxRma("put", WEFT_SETTINGS, False, programs, "host-device").absent(emulated)
    assert UcxRma("put", WEFT_SETTINGS, False, programs, "host-device").absent(cuda) is None
    assert "host memory only" in MpiRma("put", "openmpi", "cpp", programs).absent(cuda)
    assert "error handling" in UcxRma("fetch-add", WEFT_SETTINGS, False, programs).absent(FETCH_ADD)
    assert WeftPgas("put", "host-device", "remote", "mapped", programs).absent(cuda) is None
    assert "pip install" in _absent_without_perftest(programs)


def _absent_without_perftest(programs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system_pgas, "perftest", lambda: None)
        return UcxRma("put", WEFT_SETTINGS, False, programs).absent(LATENCY)


def test_series_differ():
    for bench in ("pgas_latency", "pgas_flood", "pgas_flood_both", "pgas_fetch_add", "memspeed"):
        for memory in ("host", "cuda"):
            labels = [system.series.label for system in one_sided_systems(bench, memory, Programs())]
            assert len(labels) == len(set(labels)), bench


def test_device_memory_has_all_pairs():
    paths = {system.series.path for system in one_sided_systems("memspeed", "cuda", Programs(), "none")}
    for pair in ("host-host", "host-device", "device-host", "device-device"):
        assert {
            f"put, {pair}, remote, mapped",
            f"get, {pair}, remote, mapped",
            f"copy, {pair}, local",
        } <= paths


def test_unknown_references_are_refused():
    with pytest.raises(BenchError, match="no reference system 'upcxx'"):
        one_sided_systems("pgas_latency", "host", Programs(), "upcxx")


def test_the_questions_of_the_benches():
    asked = questions(parsed("pgas"))
    assert [question.bench for question in asked] == [
        "pgas_latency",
        "pgas_flood",
        "pgas_flood_both",
        "pgas_fetch_add",
    ]
    distinct = questions(parsed("pgas", "--distinct", "--questions", "flood", "--sizes", "8,1M"))
    assert [(question.sizes, question.distinct) for question in distinct] == [
        ((8, 1 << 20), False),
        ((1 << 20,), True),
    ]
    assert [question.bench for question in questions(parsed("pgas", "--memory", "emulated"))][
        -1
    ] == "pgas_flood_both"
    (memspeed,) = questions(parsed("memspeed"))
    assert memspeed.distinct
    with pytest.raises(BenchError, match="at least one byte"):
        questions(parsed("pgas", "--sizes", "0,8"))


def test_steps_of_distinct_buffers_use_every_buffer():
    question = Question("pgas_flood", (1 << 16, 1 << 20), distinct=True)
    for step in question.steps(1.0, 10_000.0):
        assert step.buffers == buffers_beyond_cache(step.size_bytes) > 1
        assert step.warmup * FLOOD_WINDOW >= step.buffers
        assert step.iterations * FLOOD_WINDOW >= step.buffers
    (memspeed,) = Question("memspeed", (1 << 20,), distinct=True).steps(1.0, 10_000.0)
    assert memspeed.warmup >= memspeed.buffers


def test_help_names_the_method(capsys):
    for bench, words in (
        ("pgas", ["100 operations in flight", "owned", "flush"]),
        ("memspeed", ["Large copies"]),
    ):
        with pytest.raises(SystemExit) as exit_info:
            parsed(bench, "--help")
        assert exit_info.value.code == 0
        text = capsys.readouterr().out
        for word in words:
            assert word in text


def test_files_are_written(monkeypatch, tmp_path, fixed_system, capsys):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    monkeypatch.setattr(pgas, "one_sided_systems", lambda *_: [fixed_system()])
    arguments = parsed(
        "pgas", "--sizes", "8,64", "--json", tmp_path / "f.jsonl", "--plot", tmp_path / "f.png"
    )
    assert arguments.function(arguments) == 0
    records = list(read_records(tmp_path / "f.jsonl"))
    assert {(r.bench, r.size_bytes) for r in records} == {
        *((bench, size) for bench in ("pgas_latency", "pgas_flood", "pgas_flood_both") for size in (8, 64)),
        ("pgas_fetch_add", 8),
    }
    assert (tmp_path / "f.png").is_file()
    assert "half of it at 8 B" in capsys.readouterr().out


@pytest.fixture
def record(make_record):
    """Makes a record of a bench and a path, of host memory with one buffer."""

    def make(bench, size_bytes, median, path, **changes):
        question = Question(bench, (size_bytes,))
        metric = question.metric
        fields = {
            "bench": bench,
            "size_bytes": size_bytes,
            "metric": metric,
            "unit": METRICS[metric][0],
            "min": median,
            "median": median,
            "max": median,
            "path": question.path(path),
            "model": "pgas",
        }
        return make_record(**{**fields, **changes})

    return make


def flood(record, values, path="put, host-host, remote, mapped", **changes):
    return [record("pgas_flood", size, value, path, **changes) for size, value in values.items()]


def test_half_of_the_peak_is_interpolated(record):
    assert half_size(flood(record, {8: 1.0, 32: 4.0, 128: 4.0})) == pytest.approx(16.0)
    assert half_size(flood(record, {8: 3.0, 32: 4.0})) == 8.0
    # The first size that reaches half counts, also if it drops again.
    assert half_size(flood(record, {8: 1.0, 64: 8.0, 512: 2.0, 4096: 8.0})) == pytest.approx(8 * 8 ** (2 / 3))


def test_points_of_a_flood_are_records(record):
    points = flood_points([*flood(record, {32: 4.0, 8: 1.0}), record("pgas_latency", 8, 1.0, "put")])
    assert [(p.bench, p.median, p.unit) for p in points] == [
        ("pgas_flood_peak", 4.0, "GB/s"),
        ("pgas_flood_half_size", pytest.approx(16.0), "B"),
    ]


def verdicts(records):
    return {verdict.goal.text: verdict for verdict in judge_pgas(records)}


@pytest.mark.parametrize(("median", "met"), [(0.0079, True), (0.0091, False)])
def test_a_put_is_judged_by_the_best_raw_ucx_and_the_better_mpi(record, median, met):
    other = "put, host-host, remote"
    records = [
        record("pgas_latency", 8, median, "put value, host-host, remote, mapped"),
        record(
            "pgas_latency",
            8,
            0.03,
            f"{other}, default settings, memory of UCX",
            system="ucx",
            model="machine",
        ),
        record(
            "pgas_latency",
            8,
            0.3,
            f"{other}, default settings, registered memory",
            system="ucx",
            model="machine",
        ),
        record("pgas_latency", 8, 0.001, "get, host-host, remote, a", system="ucx", model="machine"),
        record("pgas_latency", 8, 0.05, other, system="openmpi", model="mpi"),
        record("pgas_latency", 8, 0.043, other, system="mpich", model="mpi"),
    ]
    found = verdicts(records)
    assert found["put of 8 B beside raw UCX"].met is met
    beside_mpi = found["put of 8 B beside MPI's put and flush"]
    assert beside_mpi.reference.system == "mpich"
    assert beside_mpi.met is (median <= 0.2 * 0.043)


def test_through_ucx_the_same_memory_and_settings_count(record):
    other = "put, host-host, remote"
    records = [
        record("pgas_latency", 8, 0.25, "put, host-host, remote, through UCX"),
        record(
            "pgas_latency", 8, 0.03, f"{other}, Weft's settings, memory of UCX", system="ucx", model="machine"
        ),
        record(
            "pgas_latency",
            8,
            0.2,
            f"{other}, Weft's settings, registered memory",
            system="ucx",
            model="machine",
        ),
    ]
    assert verdicts(records)["copy of 8 B through UCX"].ratio == pytest.approx(1.25)


def test_a_fetch_add_is_judged_by_the_cache_line(record):
    line = record("pgas_fetch_add", 8, 0.04, "between the cores", system="cache-line", model="machine")
    for sharing, median, met in (("owned", 0.059, True), ("contended", 0.061, False)):
        own = record("pgas_fetch_add", 8, median, f"fetch-add {sharing}, host, remote, mapped")
        assert verdicts([own, line])[f"fetch-add on another PE's word, {sharing}"].met is met


def test_floods_are_judged_by_half_size_and_peak(record):
    mpi = flood(record, {8: 1.0, 32: 4.0, 128: 4.0}, "put, host-host, remote", system="openmpi", model="mpi")
    ucx = flood(record, {8: 1.0, 128: 4.0}, "put, host-host, remote, a", system="ucx", model="machine")
    own = flood(record, {8: 1.0, 32: 3.9, 128: 3.9})
    found = verdicts([*mpi, *ucx, *own])
    half = found["flood of puts, half of the peak at"]
    assert half.measured.median < half.reference.median == pytest.approx(16.0)
    assert half.met is True
    assert found["flood of puts, peak"].ratio == pytest.approx(3.9 / 4.0)
    assert found["flood of gets, peak"].met is None


def test_device_goals_compare_within_one_placement(record):
    large, small = (q for q in dict.fromkeys(goal.question for goal in device_pgas_goals("cuda")))

    def found(question, median, way, path="", **changes):
        made = record(question.bench, question.sizes[0], median, "", memory="cuda", **changes)
        return dataclasses.replace(made, path=path or question.path(way))

    mapped, staged = "device-device, remote, mapped", "device-device, remote, staged"
    records = [
        found(large, 360.0, f"put, {mapped}"),
        found(large, 100.0, f"put, {mapped}", path=f"put, {mapped}, same GPU"),
        found(large, 370.0, "", system="peer-copy", model="machine"),
        found(large, 5.0, f"put, {staged}"),
        found(large, 9.0, "get, device-host, remote, mapped"),
        found(large, 11.0, "get, host-host, remote, mapped"),
        found(small, 10.0, f"get, {mapped}"),
        found(small, 20.0, f"get, {staged}"),
    ]
    judged = {verdict.goal.text: verdict for verdict in judge_pgas(records, "cuda")}
    beside = judged["put of 64 MiB between devices beside a plain peer copy"]
    assert (beside.ratio, beside.met) == (pytest.approx(360 / 370), True)
    assert judged["put of 64 MiB between devices beside a staged one"].met is True
    assert judged["get of 64 MiB, device-host, beside host memory"].met is False
    assert judged["get of 8 B between devices beside a staged one"].ratio == pytest.approx(0.5)
    assert judged["put of 64 MiB, host-device, beside host memory"].met is None


@pytest.mark.parametrize("memory", ["emulated", "cuda"])
def test_every_device_goal_is_asked_for(memory):
    for goal in device_pgas_goals(memory):
        bench = goal.question.bench
        paths = {
            goal.question.path(system.series.path): system.series.system
            for system in one_sided_systems(bench, memory, Programs())
        }
        assert all(paths[path] == "weft" for path in goal.paths), goal.text
        assert any(
            path.startswith(goal.reference.path) and system == goal.reference.system
            for path, system in paths.items()
        ), goal.text


def test_every_goal_and_reference_is_asked_for():
    asked = {
        (bench, system.series.system, system.series.path)
        for bench in ("pgas_latency", "pgas_flood", "pgas_fetch_add")
        for system in one_sided_systems(bench, "host", Programs())
    }
    for goal in PGAS_GOALS:
        bench = "pgas_flood" if goal.question.bench.startswith("pgas_flood") else goal.question.bench
        assert all((bench, "weft", path) in asked for path in goal.paths), goal.text
        for reference in (goal.reference, *goal.reference.others):
            assert any(
                (bench, reference.system) == found[:2] and found[2].startswith(reference.path)
                for found in asked
            ), goal.text


def test_distinct_buffers_do_not_judge(record):
    own = dataclasses.replace(
        record("pgas_latency", 8, 0.001, "x"), path="put value, host-host, remote, mapped"
    )
    distinct = [
        dataclasses.replace(r, path=r.path.replace("one buffer", "distinct buffers"))
        for r in flood(record, {8: 1.0})
    ]
    found = verdicts([own, *distinct])
    assert found["flood of puts, peak"].measured is None
