"""weft bench device-collectives: its questions, and short runs of its program on emulated devices."""

import argparse
import json
import subprocess
import sys

import pytest

from weft_bench.device_collectives import questions
from weft_bench.errors import BenchError


def asked(sizes, pes=2, operations=("all_reduce", "all_gather"), memory="emulated"):
    return questions(argparse.Namespace(sizes=sizes, pes=pes, operations=list(operations), memory=memory))


def test_a_question_for_each_operation():
    found = asked("8,1K")
    assert [question.bench for question in found] == ["all_reduce", "all_gather"]
    assert all(question.sizes == (8, 1024) and question.metric == "latency_us" for question in found)
    assert asked(None)[0].sizes[-1] == 64 << 20


@pytest.mark.parametrize(("sizes", "pes"), [("4", 2), ("0", 2), ("8", 3)])
def test_sizes_are_whole_elements_of_all_pes(sizes, pes):
    with pytest.raises(BenchError, match="no whole elements"):
        asked(sizes, pes)


@pytest.mark.parametrize("options", [(), ("--graph", "--place-bytes", "4096")])
@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter"])
def test_the_program_measures(python_programs, operation, options):
    command = [sys.executable, "-m", "weft", "run", "-n", "2", str(python_programs / "device_collectives.py")]
    command += [operation, "8:3:1", "100000:3:1", "--memory", "emulated", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(figure["metric"], figure["size_bytes"]) for figure in figures] == [
        ("latency_us", 8),
        ("latency_us", 100000),
    ]
    assert all(figure["value"] > 0 for figure in figures)
