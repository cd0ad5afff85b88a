"""The command line: help that names the method, errors in a sentence, files where asked for."""

import argparse
import re

import pytest

from weft.bench import cli, command
from weft.bench.programs import Programs
from weft.bench.question import Question
from weft.bench.record import read_records
from weft.bench.system import Reading, Series
from weft.bench.systems import reference_systems


class Fixed:
    """A system that always says the same."""

    series = Series("ucx", "machine", "cpp", "tag, default settings")

    def __init__(self, missing=None):
        self.missing = missing

    def absent(self, question):
        return self.missing

    def run(self, question):
        return [Reading(size, 1.5, 3) for size in question.sizes]


def run(*arguments):
    parser = argparse.ArgumentParser(prog="weft")
    cli.add_parser(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["bench", *map(str, arguments)])
    return parsed.function(parsed)


@pytest.mark.parametrize(
    ("bench", "words"),
    [
        ("latency", ["half of the round trip", "clock", "warm-up", "barrier", "one way", "median"]),
        ("bandwidth", ["window of 64", "acknowledgement", "10^9", "barrier", "median"]),
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
def one_system(monkeypatch):
    monkeypatch.setattr(command, "weft_systems", lambda programs: [])
    monkeypatch.setattr(command, "reference_systems", lambda *_: [Fixed()])


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


def test_when_nothing_is_there_all_is_listed_and_the_status_says_so(monkeypatch, capsys):
    monkeypatch.setattr(command, "weft_systems", lambda programs: [])
    monkeypatch.setattr(command, "reference_systems", lambda *_: [Fixed("pip install it")])
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
        ("all", {"ucx", "mpi4py-openmpi", "charm4py"}),
    ],
)
def test_against_chooses_the_references(against, names):
    assert {system.series.system for system in reference_systems(against, Programs())} == names


def test_a_charm4py_built_from_source_is_measured_beside_the_installed_one(tmp_path):
    systems = reference_systems("charm4py", Programs(), tmp_path)
    assert [system.series.path for system in systems] == ["", "", "on MPI", "on MPI"]
    assert str(tmp_path) in systems[2].absent(Question("latency", (8,)))


def test_few_runs_are_remarked_on(one_system, capsys):
    assert run("latency", "--sizes", "8", "--runs", "2") == 0
    assert "too few" in capsys.readouterr().out
