"""The command line: help that names the method, errors in a sentence, files where asked for."""

import argparse
import re
import signal

import pytest

from weft_bench import cli, command, gpus, running
from weft_bench.programs import Programs
from weft_bench.question import Question
from weft_bench.record import read_records
from weft_bench.system_weft import MODELS, weft_systems
from weft_bench.systems import reference_systems


def run(*arguments):
    parser = argparse.ArgumentParser(prog="weft")
    cli.add_parser(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["bench", *map(str, arguments)])
    return parsed.function(parsed)


@pytest.mark.parametrize(
    ("bench", "words"),
    [
        ("latency", ["half of the round trip", "clock", "warm-up", "barrier", "one way", "median"]),
        ("bandwidth", ["window of 64", "acknowledgement", "10^9", "barrier", "median", "distinct buffers"]),
        ("rate", ["windows of 64", "million messages per second", "barrier", "median"]),
    ],
)
def test_help_names_the_method(bench, words, capsys):
    with pytest.raises(SystemExit) as exit_info:
        run(bench, "--help")
    assert exit_info.value.code == 0
    text = re.sub(r"\s+", " ", capsys.readouterr().out).lower()
    for word in words:
        assert word in text


@pytest.fixture
def one_system(monkeypatch, fixed_system):
    monkeypatch.setattr(command, "weft_systems", lambda *_: [])
    monkeypatch.setattr(command, "reference_systems", lambda *_: [fixed_system()])


def test_json_and_plot_are_written(one_system, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    status = run("latency", "--sizes", "8,64", "--json", tmp_path / "f.jsonl", "--plot", tmp_path / "f.png")
    assert status == 0
    records = list(read_records(tmp_path / "f.jsonl"))
    assert [(record.size_bytes, record.median, record.runs) for record in records] == [
        (8, 1.5, 5),
        (64, 1.5, 5),
    ]
    assert (tmp_path / "f.png").is_file()
    assert "1.50" in capsys.readouterr().out


def test_bandwidth_of_host_memory_is_measured_with_one_buffer_and_with_distinct_ones(
    one_system, tmp_path, capsys
):
    file = tmp_path / "f.jsonl"
    assert run("bandwidth", "--sizes", "64,64K", "--json", file) == 0
    assert [(record.size_bytes, record.path) for record in read_records(file)] == [
        (64, "tag, default settings, one buffer"),
        (65536, "tag, default settings, one buffer"),
        (65536, "tag, default settings, distinct buffers"),
    ]
    text = capsys.readouterr().out
    assert "host memory, one buffer" in text
    assert "host memory, distinct buffers" in text
    assert run("bandwidth", "--sizes", "64", "--memory", "emulated", "--json", file) == 0
    assert [record.path for record in read_records(file)] == ["tag, default settings"]


def test_when_nothing_is_there_all_is_listed_and_the_status_says_so(monkeypatch, fixed_system, capsys):
    monkeypatch.setattr(command, "weft_systems", lambda *_: [])
    monkeypatch.setattr(command, "reference_systems", lambda *_: [fixed_system("pip install it")])
    assert run("latency", "--sizes", "8") == 1
    assert "pip install it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["latency", "--against", "infiniband"], "no reference system 'infiniband'"),
        (["latency", "--sizes", "8Q"], "'8Q' is not a message size"),
        (["rate", "--runs", "0"], "at least one run"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments, message, capsys):
    assert run(*arguments) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("against", "names"),
    [
        ("none", set()),
        ("ucx,charm4py", {"ucx", "charm4py"}),
        ("all", {"ucx", "openmpi", "mpich", "mpi4py-openmpi", "charm++", "charm4py"}),
    ],
)
def test_against_chooses_the_references(against, names):
    assert {system.series.system for system in reference_systems(against, Programs())} == names


def test_mpi_alone_is_measured_beside_the_mpi_libraries():
    systems = reference_systems("all", Programs(), models=["mpi"])
    assert [system.series.system for system in systems] == ["openmpi", "mpich", "mpi4py-openmpi"]
    named = reference_systems("ucx", Programs(), models=["mpi"])
    assert {system.series.system for system in named} == {"ucx"}


def test_model_chooses_the_ways_through_weft():
    series = [system.series for system in weft_systems(Programs(), models=["mpi"])]
    assert [(one.model, one.language) for one in series] == [("mpi", "cpp"), ("mpi", "python")]
    assert {one.series.model for one in weft_systems(Programs(), models=["channel"])} == {"channel"}
    models = {one.series.model for memory in ("host", "cuda") for one in weft_systems(Programs(), memory)}
    assert models == set(MODELS)
    paths = [one.series.path for one in weft_systems(Programs(), "cuda", paths=["queued", "graph"])]
    assert paths == ["queued", "graph"]


def test_an_unknown_model_is_refused(capsys):
    with pytest.raises(SystemExit):
        run("latency", "--model", "mpich")
    assert "'mpich' is none of machine, channel, messaging, pgas, mpi" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("memory", "names"),
    [("emulated", {"peer-copy"}), ("cuda", {"ucx", "peer-copy", "nccl", "mpi4py-openmpi"})],
)
def test_all_are_those_that_may_know_the_memory(memory, names):
    systems = reference_systems("all", Programs(), memory=memory)
    assert {system.series.system for system in systems} == names


def test_a_charm4py_built_from_source_is_measured_beside_the_installed_one(tmp_path):
    systems = reference_systems("charm4py", Programs(), tmp_path)
    assert [system.series.path for system in systems] == ["", "", "on MPI", "on MPI"]
    assert str(tmp_path) in systems[2].absent(Question("latency", (8,)))


@pytest.mark.parametrize(
    ("symbols", "path"), [(b"\0ucp_worker_create\0", "on UCX"), (b"\0MPI_Isend\0", "on MPI")]
)
def test_a_charm4py_built_from_source_is_named_by_the_layer_it_sends_by(tmp_path, symbols, path):
    libraries = tmp_path / "charm4py" / ".libs"
    libraries.mkdir(parents=True)
    (libraries / "libcharm.so").write_bytes(symbols)
    systems = reference_systems("charm4py", Programs(), tmp_path)
    assert [system.series.path for system in systems] == ["", "", path, path]


def test_without_a_gpu_cuda_is_refused_in_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(gpus, "gpu_names", tuple)
    for bench in ("latency", "jacobi3d"):
        assert run(bench, "--memory", "cuda") == 1
        error = capsys.readouterr().err
        assert error.startswith("weft bench: --memory cuda: the CUDA driver (libcuda.so.1) shows no GPU")
        assert error.count("\n") == 1


def test_models_that_host_memory_does_not_have_are_refused_in_a_sentence(capsys):
    assert run("jacobi3d", "--models", "queued,graph") == 1
    error = capsys.readouterr().err
    assert error.startswith("weft bench: queued and graph are models of device memory")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("placement", "labels"),
    [
        (None, ["tag, default settings, GPU pair"]),
        ("same", ["tag, default settings, same GPU"]),
        ("both", ["tag, default settings, GPU pair", "tag, default settings, same GPU"]),
    ],
)
def test_gpus_are_placed_as_asked(one_system, monkeypatch, tmp_path, placement, labels):
    monkeypatch.setattr(gpus, "gpu_names", lambda: ("GPU A", "GPU A"))
    words = [] if placement is None else ["--placement", placement]
    file = tmp_path / "f.json"
    assert run("latency", "--memory", "cuda", "--sizes", "8", "--json", file, *words) == 0
    assert [record.path for record in read_records(file)] == labels


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--placement", "pair", "--memory", "cuda"], "needs two GPUs, and there is one"),
        (["--placement", "same"], "host memory is on none"),
    ],
)
def test_a_wrong_placement_is_told_in_a_sentence(one_system, monkeypatch, capsys, arguments, message):
    monkeypatch.setattr(gpus, "gpu_names", lambda: ("GPU A",))
    assert run("latency", *arguments) == 1
    assert message in capsys.readouterr().err


def test_without_a_terminal_every_launch_is_told(one_system, capsys):
    assert run("latency", "--sizes", "8", "--runs", "2") == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(":")[0] for line in lines] == [
        "1/2 ucx, tag, default settings",
        "2/2 ucx, tag, default settings",
    ]


def test_a_signal_ends_a_bench_with_what_there_is(monkeypatch, ends_itself, tmp_path, capsys):
    monkeypatch.setattr(command, "weft_systems", lambda *_: [])
    monkeypatch.setattr(command, "reference_systems", lambda *_: [ends_itself])
    file = tmp_path / "f.json"
    assert run("latency", "--sizes", "8,64", "--json", file) == 128 + signal.SIGTERM
    assert {(record.runs, record.median) for record in read_records(file)} == {(2, 1.5)}
    assert "ended by SIGTERM: 2 of 5 runs" in capsys.readouterr().out
    assert ends_itself.runs == 3


def test_a_limit_ends_a_bench_with_what_there_is(one_system, capsys):
    assert run("latency", "--sizes", "8", "--minutes", "1e-9") == 1
    assert "the time is over: 0 of 5 runs" in capsys.readouterr().out


@pytest.mark.parametrize("minutes", ["0", "-1", "inf", "nan", "soon"])
def test_a_limit_is_minutes(minutes, capsys):
    with pytest.raises(SystemExit):
        run("latency", f"--minutes={minutes}")
    assert "is not a number of minutes above 0" in capsys.readouterr().err


@pytest.mark.parametrize(("memory", "asked"), [("host", True), ("emulated", False), ("cuda", False)])
def test_where_the_cores_are_counts_for_host_memory_alone(one_system, monkeypatch, memory, asked):
    distances = []
    monkeypatch.setattr(running, "core_distance_ns", lambda _: distances.append(40.0) or 40.0)
    monkeypatch.setattr(gpus, "gpu_names", lambda: ("GPU A", "GPU A"))
    assert run("latency", "--sizes", "8", "--memory", memory) == 0
    assert bool(distances) == asked


def test_few_runs_are_remarked_on(one_system, capsys):
    assert run("latency", "--sizes", "8", "--runs", "2") == 0
    assert "too few" in capsys.readouterr().out
