"""Task Bench on chares, and the program that finds METG. TASK_BENCH may name the folder of Task Bench."""

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks/task_bench"

# Prints what the core library prints, of tasks that take `overhead` and 1 us for each iteration.
SYSTEM = """
import sys
option = lambda name: int(sys.argv[sys.argv.index(name) + 1])
tasks, overhead = option("-steps") * option("-width"), float(sys.argv[1])
print("Total Tasks", tasks)
print("Total FLOPs", tasks * 64 * option("-iter"))
print("Elapsed Time %e seconds" % (tasks / 2 * (overhead + option("-iter")) * 1e-6))
"""


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # for dataclasses
    spec.loader.exec_module(module)
    return module


metg = load("metg")


def command(overhead):
    return shlex.join([sys.executable, "-c", SYSTEM, str(overhead)])


def test_metg_is_found_between_two_sizes(tmp_path, capsys):
    file, picture = tmp_path / "metg.jsonl", tmp_path / "metg.png"
    words = ["--pes", "2", "--runs", "1", "--iterations", "1024", "--patterns", "fft,spread"]
    words += ["--system", f"fast={command(3)}", "--system", f"slow={command(48)}"]
    assert metg.main([*words, "--json", str(file), "--plot", str(picture)]) == 0
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    found = {(line["system"], line["pattern"]): line["metg_us"] for line in lines if line["bench"] == "metg"}
    # The best rate is that of 1024 iterations in 1027 us, so one half is a little more than the overhead.
    for pattern in ("fft", "spread"):
        assert found["fast", pattern] == pytest.approx(6, rel=0.05)
        assert found["slow", pattern] == pytest.approx(96, rel=0.05)
    shortest = {line["system"]: line["iterations"] for line in lines if line["bench"] == "task-bench"}
    assert shortest == {"fast": 1, "slow": 8}  # it is not asked again below a quarter
    assert picture.stat().st_size > 1000
    assert "METG(50 %) in us, 2 PEs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(100, 1.0), (50, 0.75), (20, 0.25)], pytest.approx(1000**0.5)),
        ([(90, 1.0), (80, 0.4), (50, 0.75), (20, 0.25)], pytest.approx(1000**0.5)),  # a disturbed run
        ([(100, 1.0), (50, 0.75)], None),  # all tasks were long enough
        ([(100, 0.4), (50, 0.3)], None),
        ([(100, 0.9), (50, 0.4), (20, 0.6)], None),  # it does not stay below
        ([], None),
    ],
)
def test_the_threshold_lies_between_two_points(points, expected):
    assert metg.metg_us(points) == expected


def test_graphs_are_such_as_the_core_takes():
    options = metg.parse(["--system", "a=b"])
    assert "-period" not in metg.graph_options("fft", 2, 8, options)
    spread = metg.graph_options("spread", 2, 8, options)
    assert spread[spread.index("-radix") + 1] == "2"
    assert spread[spread.index("-period") + 1] == "1"
    options.imbalance = 0.5
    assert "load_imbalance" in metg.graph_options("fft", 2, 8, options)


def test_what_is_wrong_is_said(capsys):
    assert metg.main(["--system", f"none={shlex.join([sys.executable, '-c', 'pass'])}"]) == 1
    assert "printed no times of Task Bench" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        metg.main(["--system", "nothing"])
    assert "give NAME=COMMAND" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        metg.main(["--system", "a=b", "--pes", "1"])
    assert "two columns at least" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        metg.main(["--system", "a=b", "--runs", "0"])
    assert "--runs, --steps and --iterations: 1 at least" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        metg.main(["--system", "a=b", "--system", "a=c"])
    assert "two --system have one name" in capsys.readouterr().err


def read(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_system_that_fails_is_left_out(tmp_path, capsys):
    file = tmp_path / "metg.jsonl"
    words = ["--runs", "1", "--patterns", "fft,tree", "--iterations", "4", "--json", str(file)]
    failing = shlex.join([sys.executable, "-c", "raise SystemExit(3)"])
    assert metg.main([*words, "--system", f"failing={failing}", "--system", f"fast={command(3)}"]) == 1
    measured = [line for line in read(file) if line["bench"] == "task-bench"]
    assert {line["pattern"] for line in measured} == {"fft", "tree"}
    assert {line["system"] for line in measured} == {"fast"}
    assert capsys.readouterr().err.count("metg: failing") == 1


def test_a_launch_that_hangs_is_ended(capsys):
    hanging = shlex.join([sys.executable, "-c", "import signal; signal.pause()"])
    assert metg.main(["--timeout", "0.2", "--system", f"hanging={hanging}"]) == 1
    assert "did not end within" in capsys.readouterr().err


def test_quick_launches_efficient_graphs_once(tmp_path):
    file = tmp_path / "metg.jsonl"
    words = ["--runs", "3", "--quick", "--patterns", "fft", "--iterations", "256", "--json", str(file)]
    assert metg.main([*words, "--system", f"slow={command(16)}"]) == 0
    launches = {line["iterations"]: line["launches"] for line in read(file) if line["bench"] == "task-bench"}
    assert launches == {256: 1, 128: 1, 64: 1, 32: 3, 16: 3, 8: 3, 4: 3}  # 80 % is at 49, 25 % at 5


def test_no_launch_begins_after_the_minutes(tmp_path):
    file = tmp_path / "metg.jsonl"
    words = ["--minutes", "1e-9", "--patterns", "fft", "--json", str(file), "--system", f"fast={command(3)}"]
    assert metg.main(words) == 0
    assert [(line["bench"], line["metg_us"]) for line in read(file)] == [("metg", None)]


@pytest.mark.parametrize("language", ["cpp", "python"])
def test_each_pattern_runs(build_folder, language):
    if "TASK_BENCH" not in os.environ:
        pytest.skip("TASK_BENCH does not name a folder of Task Bench: benchmarks/task_bench/README.md")
    program = FOLDER / "task_bench_chares.py"
    if language == "cpp":
        program = build_folder / "benchmarks/task_bench_chares"
        if not program.exists():
            pytest.skip(f"{program} is not built: configure with -DWEFT_TASK_BENCH=FOLDER")
    patterns = ("trivial", "no_comm", "stencil_1d", "stencil_1d_periodic", "dom", "tree", "fft")
    patterns += ("all_to_all", "nearest", "spread", "random_nearest")
    graphs = [
        word for pattern in patterns for word in ("-type", pattern, "-width", "8", "-steps", "20", "-and")
    ]
    graphs += ["-type", "stencil_1d", "-width", "5", "-output", "100000", "-scratch", "64"]
    done = subprocess.run(
        [sys.executable, "-m", "weft", "run", "-n", "2", program, *graphs],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Elapsed Time" in done.stdout
