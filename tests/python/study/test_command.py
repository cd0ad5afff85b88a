"""`weft study` from its command line: what it runs, prints and writes, and how it is resumed and refused."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys

import pytest

from weft.cli import main
from weft_bench import system_python
from weft_bench.errors import BenchError
from weft_bench.gpus import gpu_names
from weft_bench.study import command, plan, studies
from weft_bench.study.plan import Group, Study, Variant
from weft_bench.study.report import cells_of, columns_of
from weft_bench.study.summary import rows_of


@pytest.fixture
def small(monkeypatch, make_study, tmp_path, programs):
    """Makes `weft study stencil2d` the study of fake programs; returns what runs it in tmp_path."""
    monkeypatch.chdir(tmp_path)
    plan = make_study(name="stencil2d")

    def make(options) -> Study:
        return Study("stencil2d", plan.groups, options.trials, options.warmup)

    monkeypatch.setitem(studies.STUDIES, "stencil2d", (make, studies.STENCIL2D_OPTIONS))

    def run(*arguments: object) -> int:
        return main(["study", "stencil2d", "--programs", str(programs.folder), *map(str, arguments)])

    return run


def test_a_study_writes_its_trials_a_page_and_a_picture(small, tmp_path, capsys) -> None:
    pytest.importorskip("matplotlib", reason="it draws the picture")
    assert small("--trials", 5, "--seed", 3) == 0
    out = capsys.readouterr()
    assert "study stencil2d: 36 launches at most, seed 3" in out.out
    assert "36/36 strong, 2 PEs: " in out.err, "a line for each launch without a terminal"
    folder = tmp_path / "study-stencil2d"
    page = (folder / "report.md").read_text()
    assert "5 trials of each variant in random order within its group (seed 3)" in page
    row = "| strong, 2 PEs | Weft, ODF 1 | 5 | 2.5 | 2.5 to 2.5 | 50.0 % | 1.250 | 1.250 to 1.250 | 0.0079 |"
    assert row in page
    assert "| strong, 2 PEs | mpi4py | 5 | 2 | 2 to 2 | 50.0 % |  |  |  |" in page
    claim = "a stencil in Python over chares takes at most a few percent (5 %) longer than over MPI, strong"
    assert claim in page
    assert (
        "| not reproduced | Weft, ODF 1 / mpi4py = 1.250 (1.250 to 1.250), strong, 2 PEs; the limit is 1.05 |"
        in page
    )
    assert "| out of reach here | the two that it compares were not both measured |" in page
    assert (folder / "times.png").read_bytes().startswith(b"\x89PNG")
    assert "![Means with their intervals](times.png)" in page
    assert len((folder / "trials.jsonl").read_text().splitlines()) == 31
    assert "not reproduced: a stencil" in out.out.replace("\n", " ")


def test_the_same_command_resumes_and_another_is_refused(small, tmp_path, monkeypatch, capsys) -> None:
    real, count = command.run_study, []

    def interrupted(study, file, programs, launches, **rest):
        def launch(group, variant):
            count.append(variant)
            if len(count) == 5:
                os.kill(os.getpid(), signal.SIGINT)
                signal.pause()
            return 1.0, {}

        return real(study, file, programs, launches, launch, **rest)

    monkeypatch.setattr(command, "run_study", interrupted)
    assert small("--trials", 1) == 128 + signal.SIGINT
    out = capsys.readouterr().out
    assert "ended by SIGINT: the same command makes the trials that are missing" in out
    monkeypatch.setattr(command, "run_study", real)
    assert small("--trials", 1) == 0
    assert "; 1 of 6 trials are in " in capsys.readouterr().out
    before = (tmp_path / "study-stencil2d" / "trials.jsonl").read_text()
    assert len(before.splitlines()) == 7

    assert small("--trials", 2) == 1
    error = capsys.readouterr().err
    assert error.startswith("weft study: study-stencil2d/trials.jsonl has trials of another study")
    assert "trials is 1 there and 2 here" in error
    assert error.count("\n") == 1
    assert (tmp_path / "study-stencil2d" / "trials.jsonl").read_text() == before
    assert small("--trials", 2, "--output", "elsewhere") == 0
    assert small("--trials", 2, "--fresh") == 0
    assert len((tmp_path / "study-stencil2d" / "trials.jsonl").read_text().splitlines()) == 13


def test_without_matplotlib_there_is_no_picture(small, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert small("--trials", 1) == 0
    assert "no picture: pip install matplotlib" in capsys.readouterr().out
    assert "times.png" not in (tmp_path / "study-stencil2d" / "report.md").read_text()


def test_a_matplotlib_that_cannot_be_imported_does_not_end_the_study(
    small, tmp_path, monkeypatch, capsys
) -> None:
    def broken(*_):
        raise BenchError("the picture needs matplotlib: pip install matplotlib")

    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(command, "write_plot", broken)
    assert small("--trials", 1) == 0
    page = (tmp_path / "study-stencil2d" / "report.md").read_text()
    assert "- the picture needs matplotlib" in page
    assert "times.png" not in page
    assert len((tmp_path / "study-stencil2d" / "trials.jsonl").read_text().splitlines()) == 7


def test_a_failed_variant_is_in_the_page_and_the_exit_status(small, tmp_path, programs, capsys) -> None:
    (programs.folder / "fake.py").write_text("import sys; sys.exit('no luck')")
    assert small("--trials", 1) == 1
    page = (tmp_path / "study-stencil2d" / "report.md").read_text()
    assert "- failed: strong, 1 PE: mpi4py: " in page
    assert "no luck" in page
    assert "failed: strong, 1 PE: mpi4py: " in capsys.readouterr().out


def test_the_time_limit_ends_a_study_that_can_be_resumed(small, capsys) -> None:
    assert small("--trials", 1, "--minutes", "1e-9") == 1
    assert "the time is over: the same command makes the trials" in capsys.readouterr().out


def test_without_a_gpu_cuda_is_refused_in_a_sentence(small, capsys) -> None:
    if names := gpu_names():
        pytest.skip(f"this machine has a GPU ({names[0]})")
    assert small("--memory", "cuda") == 1
    assert capsys.readouterr().err.startswith("weft study: --memory cuda: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--trials", "0"],
        ["--warmup", "-1"],
        ["--pes", "0"],
        ["--scaling", "odd"],
        ["--seed", "x"],
        ["--minutes", "0"],
    ],
)
def test_mistakes_are_told(small, capsys, arguments) -> None:
    with pytest.raises(SystemExit) as ended:
        small(*arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize("words", [["stencil2d"], ["pic"], []])
def test_help_says_the_method(capsys, words) -> None:
    with pytest.raises(SystemExit):
        main(["study", *words, "--help"])
    out = capsys.readouterr().out
    for part in ("bootstrapped 99 % interval", "Mann-Whitney U", "random order", "two barriers", "resumes"):
        assert part in out


def parsed(*arguments: str):
    """The arguments of `weft study`, and the study that they ask for."""
    import argparse

    from weft_bench.study.cli import add_parser

    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    options = parser.parse_args(["study", *arguments])
    return studies.STUDIES[options.study][0](options)


def test_the_plan_of_stencil2d() -> None:
    study = parsed("stencil2d", "--pes", "1,2", "--odf", "1,4", "--strong-size", "64", "--weak-size", "32")
    assert [(g.name, g.pes, g.scaling, g.work) for g in study.groups] == [
        ("strong, 1 PE", 1, "strong", 1),
        ("strong, 2 PEs", 2, "strong", 1),
        ("weak, 1 PE", 1, "weak", 1),
        ("weak, 2 PEs", 2, "weak", 2),
    ]
    for group in study.groups:
        assert [v.name for v in group.variants] == ["mpi4py", "Weft, ODF 1", "Weft, ODF 4"]
        size = "64" if group.scaling == "strong" else "32"
        for variant in group.variants:
            assert variant.options[variant.options.index("--size") + 1] == size
            assert variant.options[variant.options.index("--scaling") + 1] == group.scaling
    assert [len(g.variants) for g in parsed("stencil2d", "--memory", "emulated", "--pes", "1").groups] == [
        2,
        2,
    ]


def test_a_study_does_not_count_one_variant_as_two() -> None:
    with pytest.raises(BenchError, match="twice: geometric, 2 PEs: Weft, ODF 1; give each"):
        parsed("pic", "--pes", "2", "--odf", "1")
    with pytest.raises(BenchError, match=r"twice: strong, 2 PEs: mpi4py; .*: Weft, ODF 4; "):
        parsed("stencil2d", "--pes", "2,2")


def test_the_plan_of_pic() -> None:
    study = parsed("pic", "--pes", "2")
    (group,) = study.groups
    assert [(v.name, v.system) for v in group.variants] == [
        ("mpi4py", "mpi4py"),
        ("mpi4py, split y", "mpi4py"),
        ("Weft, ODF 1", "weft"),
        ("Weft, ODF 8", "weft"),
        ("Weft, ODF 8, LB", "weft"),
        ("charm4py, ODF 8, LB", "charm4py"),
    ]
    common = set(group.variants[0].options)
    assert all(common <= set(variant.options) for variant in group.variants), "all solve the same problem"
    (pes, pinned) = parsed("pic", "--memory", "emulated").groups[-1].pes, group.variants[4].launch_options
    assert pes >= 2 and pinned == ("--lb", "greedy_refine")


def test_commands_have_the_launchers_of_their_systems(programs, monkeypatch) -> None:
    for system in ("weft", "mpi4py", "charm4py"):
        words = Variant("v", system, "fake.py", ("-x", "1"), ("--lb", "none")).command(2, programs)
        script = words.index(str(programs.folder / "fake.py"))
        assert words[script + 1 :] == ["-x", "1"]
        assert ("--lb" in words[:script]) == (system == "weft")
    assert "was not found" in Variant("v", "weft", "absent.py").absent(programs)


def test_mpi4py_gets_a_ucx_that_knows_gpus_if_its_own_does_not(programs, monkeypatch) -> None:
    monkeypatch.setattr(system_python, "_lent_ucx", lambda: {"OMPI_MCA_pml": "ucx"})
    study = parsed("stencil2d", "--memory", "cuda", "--pes", "2", "--scaling", "strong")
    mpi4py, weft = study.groups[0].variants[:2]
    for support, environment in (("lent", {"OMPI_MCA_pml": "ucx"}), ("own", {})):
        monkeypatch.setattr(system_python, "_gpu_support", lambda launcher, support=support: support)
        assert (mpi4py.environment, weft.environment) == (environment, {})
    assert parsed("stencil2d", "--pes", "2").groups[0].variants[0].environment == {}
    monkeypatch.setattr(system_python, "_gpu_support", lambda launcher: "none")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr(plan, "mpiexec", lambda: "mpiexec")
    gpu_program = dataclasses.replace(mpi4py, program="fake.py")
    assert "knows no GPUs" in (gpu_program.absent(programs) or "")


def test_parts_of_the_time_have_columns_if_programs_print_them(make_study) -> None:
    def values(group, variant):
        return [2.0, 2.0]

    def means(group, variant, part):
        return 0.25 if (variant, part) == ("mpi4py", "balancing_s") else None

    study = make_study()
    titles, lines = columns_of(rows_of(study, values, means))
    assert titles[4:7] == ("99 % interval, s", "balancing, s", "efficiency")
    assert [line[5] for line in lines] == ["0.25", "", ""] * 2
    assert "balancing, s" not in columns_of(rows_of(study, values))[0]


def test_efficiency_is_that_of_the_scaling(make_study) -> None:
    variants = (Variant("mpi4py", "mpi4py", "a.py"),)
    groups = (
        Group("weak, 1 PE", 1, variants, "weak", 1),
        Group("weak, 4 PEs", 4, variants, "weak", 4),
        Group("strong, 1 PE", 1, variants, "strong", 1),
        Group("strong, 4 PEs", 4, variants, "strong", 1),
        Group("other", 4, variants),
    )
    times = {
        "weak, 1 PE": [1.0],
        "weak, 4 PEs": [1.25],
        "strong, 1 PE": [1.0],
        "strong, 4 PEs": [0.5],
        "other": [1.0],
    }
    rows = rows_of(Study("s", groups, 1, 0), lambda group, variant: times[group])
    assert [row.efficiency for row in rows] == [1.0, 0.8, 1.0, 0.5, None]
    assert [cells_of(row)[7] for row in rows] == ["100.0 %", "80.0 %", "100.0 %", "50.0 %", ""]


def test_a_real_study_of_stencil2d(tmp_path, monkeypatch) -> None:
    for needed in ("mpi4py", "weft._core"):
        pytest.importorskip(needed, reason="NOT TESTED: it runs Stencil2D on Weft and mpi4py")
    monkeypatch.chdir(tmp_path)
    sizes = ["--strong-size", "40", "--iterations", "5", "--iterations-before", "2", "--odf", "2"]
    arguments = ["--trials", "2", "--warmup", "0", "--pes", "2", "--scaling", "strong", *sizes]
    assert main(["study", "stencil2d", *arguments]) == 0
    lines = (tmp_path / "study-stencil2d" / "trials.jsonl").read_text().splitlines()
    trials = [json.loads(line) for line in lines[1:]]
    assert sorted(trial["variant"] for trial in trials) == ["Weft, ODF 2"] * 2 + ["mpi4py"] * 2
    assert {trial["fields"]["size_bytes"] for trial in trials} == {8 * 40 * 40}
    assert len({trial["fields"]["checksum"] for trial in trials} - {None}) == 1, "all solve the same problem"
    assert "| strong, 2 PEs | Weft, ODF 2 | 2 |" in (tmp_path / "study-stencil2d" / "report.md").read_text()
