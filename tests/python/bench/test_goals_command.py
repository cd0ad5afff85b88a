"""The commands benchmarks/figures.py and benchmarks/published.py."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from goals import command
from goals.figures import BANDWIDTH, LATENCY, goals_beside
from weft_bench import gpus, running
from weft_bench.record import read_records, write_records

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def run(*words):
    return command.figures([str(word) for word in words])


@pytest.mark.parametrize("program", ["figures.py", "published.py"])
def test_each_is_a_program(program):
    """Without the build tree: only Python is needed to judge files."""
    done = subprocess.run(
        [sys.executable, BENCHMARKS / program, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"usage: {program}" in done.stdout


def test_help_names_the_method(capsys):
    with pytest.raises(SystemExit):
        run("--help")
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    for word in ("beside its limit", "half of the round trip", "warm-up", "creates 100,000 elements"):
        assert word in text


def test_without_a_gpu_cuda_is_refused_in_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(gpus, "gpu_names", tuple)
    assert run("--memory", "cuda") == 1
    error = capsys.readouterr().err
    assert error.startswith("figures: --memory cuda: the CUDA driver (libcuda.so.1) shows no GPU")
    assert error.count("\n") == 1


def test_a_signal_ends_it_with_what_there_is(monkeypatch, fixed_system, ends_itself, tmp_path, capsys):
    asked = [(LATENCY, [ends_itself, fixed_system("none")]), (BANDWIDTH, [ends_itself])]
    monkeypatch.setattr(command, "questions", lambda *_: asked)
    file = tmp_path / "f.json"
    assert run("--json", file) == 128 + signal.SIGTERM
    assert {(record.runs, record.median) for record in read_records(file)} == {(2, 1.5)}
    assert "ended by SIGTERM: 2 of 5 runs" in capsys.readouterr().out
    assert ends_itself.runs == 3


def test_figures_are_judged_from_files(make_record, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "ask_question", lambda *_: pytest.fail("measured"))
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    direct = make_record(memory="cuda", path="direct, GPU pair", size_bytes=4096)
    staged = make_record(memory="cuda", path="staged, GPU pair", size_bytes=4096, median=9.0, max=9.0)
    write_records(files[0], [direct])
    write_records(files[1], [direct, staged])
    assert run("--memory", "cuda", "--from", *files) == 1, "most were not measured"
    text = capsys.readouterr().out
    row = next(line for line in text.splitlines() if "C++ channel over host staging, latency" in line)
    assert "0.300 us at 4K" in row
    assert "0.03 x" in row
    assert " met" in row
    assert text.count("not measured") == 11


def test_figures_beside_one_system_say_how_to_get_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(running, "core_distance_ns", lambda _: None)
    assert run("--beside", "charm++", "--programs", tmp_path) == 1
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "cmake -DWEFT_CHARM=ITS_FOLDER" in text
    assert text.count("not measured") == len(goals_beside("charm++"))


@pytest.mark.parametrize("words", [("--beside", "nobody"), ("--beside", "charm++", "--memory", "emulated")])
def test_figures_beside_no_system_are_refused_in_a_sentence(words, capsys):
    assert run(*words) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"figures: --beside {words[1]}: no figure in ")
    assert error.count("\n") == 1


def test_a_missing_file_of_figures_is_told_in_a_sentence(tmp_path, capsys):
    assert run("--from", tmp_path / "none.json") == 1
    assert "none.json" in capsys.readouterr().err


def test_published_figures_stand_beside_those_of_files(make_record, tmp_path, capsys):
    file = tmp_path / "a.json"
    entry = {"model": "messaging", "memory": "cuda"}
    direct = make_record(path="tagged, GPU pair", **entry)
    staged = make_record(path="staged, GPU pair", median=3.0, max=3.0, **entry)
    write_records(file, [direct, staged])
    assert command.published([str(file)]) == 0
    assert "10.0 x" in capsys.readouterr().out
    assert command.published([str(tmp_path / "none.json")]) == 1
    assert "published: " in capsys.readouterr().err
