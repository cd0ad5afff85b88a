"""tools/check_gpu: which steps run, with how much of the time; a step that is ended keeps its files."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "check_gpu"


def load() -> ModuleType:
    loader = SourceFileLoader("check_gpu", str(TOOL))
    spec = importlib.util.spec_from_loader("check_gpu", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_gpu"] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


check_gpu = load()


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Measures with nothing behind it; what is asked of `weft`, by step, with the share of the time."""

    def measure(*arguments, gpus, left_s=500.0, absent=()):
        runs = {}

        def run(self, name, command, share=1.0, required=True, **variables):
            assert str(ROOT / "benchmarks") in self.environment["PYTHONPATH"].split(":")  # has weft_bench
            runs[name] = ([str(word) for word in command[3:]], share)
            (self.folder / f"{name}.json").touch()

        monkeypatch.setattr(check_gpu.Check, "run", run)
        monkeypatch.setattr(check_gpu.Check, "left_s", lambda self: left_s)
        monkeypatch.setattr(check_gpu, "build_all", lambda *_, **__: True)
        monkeypatch.setattr(check_gpu, "num_gpus", lambda: gpus)
        monkeypatch.setattr(check_gpu, "has_module", lambda name: name not in absent)
        monkeypatch.setattr(sys, "argv", ["check_gpu", str(tmp_path), "--build", str(tmp_path), *arguments])
        assert check_gpu.main() == 0
        return runs

    return measure


BENCHES = ["figures", "latency", "bandwidth", "jacobi3d", "scaling"]
STUDIES = ["stencil2d", "pic"]
JUDGED = ["verdicts", "published"]


@pytest.mark.parametrize(
    ("arguments", "gpus", "steps"),
    [
        ([], 4, ["ctest", "pytest", "info", *BENCHES, *STUDIES, *JUDGED]),
        (["--skip-tests"], 2, ["info", *BENCHES[:-1], *STUDIES, *JUDGED]),
        (["--skip-tests"], 1, ["info", *BENCHES[1:-1], *STUDIES, *JUDGED]),
        (["--kind", "emulated", "--skip-tests"], 0, ["info", *BENCHES, *STUDIES, *JUDGED]),
        (["--only", "latency,figures"], 2, ["info", "figures", "latency", *JUDGED]),
        (["--only", "ctest"], 2, ["ctest"]),
    ],
)
def test_what_is_worth_most_comes_first(measured, arguments, gpus, steps):
    ran = measured(*arguments, gpus=gpus)
    described = {"gpus", "topology", "processors", "compiler"}
    assert [name for name in ran if name not in described] == steps


def test_benches_share_the_time_and_end_by_themselves(measured):
    ran = measured("--skip-tests", gpus=4, left_s=515.0)  # 15 of them for the verdicts
    seconds = [ran[step][1] * 515.0 for step in (*BENCHES, *STUDIES)]
    assert seconds == pytest.approx(
        [500 * share for share in (3 / 18, 3 / 15, 3 / 12, 3 / 9, 2 / 6, 2 / 4, 1)]
    )
    for step in (*BENCHES, *STUDIES):
        words, share = ran[step]
        minutes = float(words[words.index("--minutes") + 1])
        assert 10 < 515.0 * share - 60 * minutes < 20


def test_studies_on_gpus_need_cupy(measured):
    ran = measured("--only", "latency,pic", gpus=1, absent=("cupy",))
    assert "latency" in ran and "pic" not in ran


def test_a_study_without_time_for_a_trial_is_left_out(measured):
    assert "pic" not in measured("--only", "pic", gpus=1, left_s=60.0)
    assert "--fresh" in measured("--only", "pic", gpus=1)["pic"][0]


def test_studies_need_the_python_package(measured, monkeypatch):
    monkeypatch.setattr(check_gpu, "has_python_headers", lambda: False)
    assert "pic" not in measured("--only", "pic", gpus=1)


def test_jacobi3d_is_asked_in_other_words(measured):
    words, _ = measured("--only", "jacobi3d", "--jacobi3d", "--scaling weak --pes 1,2", gpus=2)["jacobi3d"]
    assert words[words.index("jacobi3d") :][:9] == [
        *["jacobi3d", "--memory", "cuda", "--runs", "5"],
        *["--scaling", "weak", "--pes", "1,2"],
    ]


def test_a_wrong_step_is_refused_in_a_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, str(TOOL), str(tmp_path), "--only", "latency,laten"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "'laten' is none of ctest, pytest, figures" in done.stderr


WRITES_WHEN_ENDED = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
open(sys.argv[1] + ".ready", "w").close()
signal.sigwait([signal.SIGTERM])
open(sys.argv[1], "w").write("figures")
sys.exit(143)
"""


def test_a_step_that_is_ended_may_write_what_it_has(monkeypatch, tmp_path):
    check = check_gpu.Check(tmp_path, 1000.0, dict(os.environ))
    file = tmp_path / "file"
    wait = subprocess.Popen.wait
    told = []

    def wait_until_ready(self, timeout=None):
        if not told:  # its limit passes as soon as it is ready
            told.append(timeout)
            while not (tmp_path / "file.ready").exists() and self.poll() is None:
                pass
            raise subprocess.TimeoutExpired("step", timeout)
        return wait(self, timeout)

    monkeypatch.setattr(check_gpu, "GRACE_S", 60.0)
    monkeypatch.setattr(subprocess.Popen, "wait", wait_until_ready)
    outcome = check.run("step", [sys.executable, "-c", WRITES_WHEN_ENDED, file], share=0.5)
    assert 400 < told[0] <= 440  # half of what is left, without the time to end
    assert file.read_text() == "figures"
    assert outcome.exit_code is None
    assert outcome.tail[-1].startswith("stopped after")
