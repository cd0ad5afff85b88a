"""Options of the launcher itself: --timeout, --label, --output, --bind, --env, and the number of threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Without a job, so that it starts fast.
SPIN = """\
import os, time
import weft

def for_ever():
    while True:
        pass

for_ever() if os.environ["WEFT_PE"] == "1" else time.sleep(60)
"""


@pytest.fixture
def clean() -> dict[str, str]:
    """This environment without the number of threads."""
    return {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}


def test_a_job_that_runs_too_long_says_where_it_is(run, tmp_path: Path) -> None:
    program = tmp_path / "spin.py"
    program.write_text(SPIN)
    places = [f"weft run: PE {pe} is here (most recent call first):\n" for pe in (0, 1)]
    for limit_s in (2, 8, 30):  # a PE that waits for its core begins late
        outcome = run("-n", 2, "--timeout", limit_s, program)
        missing = [text for text in (*places, "in for_ever\n") if text not in outcome.stderr]
        if not missing:
            break
    assert missing == [], outcome.stderr
    assert outcome.exit_code == 124
    assert outcome.stderr.endswith(
        f"weft run: the job has run for {limit_s} s, the limit of --timeout; ending the job\n"
    )


def test_pes_that_ignore_sigterm_are_killed(run) -> None:
    outcome = run("-n", 2, "--timeout", "0.5", "--", "sh", "-c", 'trap "" TERM; while :; do sleep 1; done')
    assert outcome.exit_code == 124


def test_a_job_that_ends_in_time_is_left_alone(run) -> None:
    outcome = run("-n", 2, "--timeout", "60", "--", "sh", "-c", "exit 3")
    assert outcome.exit_code == 3
    assert "--timeout" not in outcome.stderr


def test_options_of_the_program_may_begin_like_those_of_the_launcher(run) -> None:
    outcome = run("-n", 1, "printf", "%s ", "--m", "2", "--t", "--lab=3", "--hang-rep")
    assert (outcome.exit_code, outcome.stdout) == (0, "--m 2 --t --lab=3 --hang-rep ")
    refused = run("-n", 1, "--time", "3", "true")
    assert refused.exit_code == 2
    assert "--time" in refused.stderr


@pytest.mark.parametrize("text", ["0", "-1", "soon", "nan", "inf"])
def test_a_limit_that_is_no_time(run, text: str) -> None:
    outcome = run("-n", 2, f"--timeout={text}", "--", "true")
    expected = f"weft run: --timeout takes a number of seconds above 0, such as 60 or 0.5, not '{text}'\n"
    assert (outcome.exit_code, outcome.stderr) == (2, expected)


def test_lines_have_the_number_of_their_pe(run) -> None:
    script = 'printf "first $WEFT_PE\\nwithout end"; printf "error $WEFT_PE\\n" >&2'
    outcome = run("-n", 11, "--label", "--", "sh", "-c", script)
    assert outcome.exit_code == 0
    numbers = range(11)
    expected = [line for pe in numbers for line in (f"{pe:2}: first {pe}", f"{pe:2}: without end")]
    assert sorted(outcome.stdout.splitlines()) == sorted(expected)
    assert sorted(outcome.stderr.splitlines()) == sorted(f"{pe:2}: error {pe}" for pe in numbers)


def test_much_labelled_output_is_complete_whoever_reads(run, start, tmp_path: Path) -> None:
    count = 100_000
    with (tmp_path / "out").open("w") as file:
        assert run("-n", 2, "--label", "--", "seq", count, stdout=file).exit_code == 0
    job = start("-n", 2, "--label", "--", "seq", count)
    for printed in ((tmp_path / "out").read_text(), job.wait().stdout):
        for pe in range(2):
            lines = [line[3:] for line in printed.splitlines() if line.startswith(f"{pe}: ")]
            assert lines == [str(number) for number in range(1, count + 1)]


def test_a_reader_that_has_enough_ends_labelled_output(start) -> None:
    job = start("-n", 1, "--label", "--", "yes")
    assert job.process.stdout.readline() == "0: y\n"
    job.process.stdout.close()
    job.process.stdout = None
    # As if it wrote itself: SIGPIPE, or an error of its own.
    assert job.wait().exit_code != 0


def test_a_reader_that_stops_does_not_stop_signals(start) -> None:
    job = start("-n", 1, "--label", "--", "yes")
    assert job.process.stdout.readline() == "0: y\n"
    job.process.send_signal(signal.SIGTERM)
    assert job.wait().exit_code == 128 + signal.SIGTERM


def test_labelled_output_of_python_comes_at_once(start, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text('import sys; print("begun"); sys.stdin.read()')
    ours, theirs = os.pipe()
    job = start("-n", 1, "--label", program, stdin=ours)
    os.close(ours)
    assert job.process.stdout.readline() == "0: begun\n"
    os.close(theirs)
    assert job.wait().exit_code == 0


def test_a_process_that_a_pe_has_left_behind_does_not_delay_the_end(run) -> None:
    # The process holds the PE's output and waits for its input, which ends after the job. Without the third
    # descriptor the shell gives it /dev/null.
    ours, theirs = os.pipe()
    try:
        script = "exec 3<&0; cat <&3 & echo done"
        assert run("-n", 1, "--label", "--", "sh", "-c", script, stdin=ours).stdout == "0: done\n"
    finally:
        os.close(theirs)
        os.close(ours)


def test_each_pe_has_a_file(run, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    script = "echo out $WEFT_PE; echo error $WEFT_PE >&2; echo again"
    outcome = run("-n", 11, "--output", folder, "--", "sh", "-c", script)
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (0, "", "")
    assert sorted(os.listdir(folder)) == [f"pe-{pe:02}.txt" for pe in range(11)]
    assert (folder / "pe-07.txt").read_text() == "out 7\nerror 7\nagain\n"


def test_output_that_cannot_be_written(run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = run("-n", 2, "--output", tmp_path / "file", "--", "true")
    expected = f"weft run: --output {tmp_path / 'file'}: File exists; give a folder\n"
    assert (outcome.exit_code, outcome.stderr) == (2, expected)
    outcome = run("-n", 2, "--label", "--output", tmp_path, "--", "true")
    assert "exclude each other" in outcome.stderr and outcome.exit_code == 2


def test_pes_are_bound_to_their_share_and_the_map_is_printed(run) -> None:
    show = "import os; print(os.environ['WEFT_PE'], sorted(os.sched_getaffinity(0)))"
    outcome = run("-n", 2, "--bind", "core", "--label", "--", sys.executable, "-c", show)
    assert outcome.exit_code == 0
    bound = {line.split()[1]: line.split(maxsplit=2)[2] for line in outcome.stdout.splitlines()}
    assert outcome.stderr.count(" is bound to ") == 2
    cpus = [set(map(int, text.strip("[]").split(","))) for text in (bound["0"], bound["1"])]
    allowed = os.sched_getaffinity(0)
    assert cpus[0] | cpus[1] <= allowed
    if outcome.stderr.count("share one") == 0:
        assert not cpus[0] & cpus[1]
    unbound = run("-n", 2, "--bind", "none", "--", sys.executable, "-c", show)
    assert unbound.stdout.count(str(sorted(allowed))) == 2


def test_threads_are_shared_among_the_pes(run, clean: dict[str, str]) -> None:
    show = ("--", "sh", "-c", 'echo "${OMP_NUM_THREADS-unset}"')
    many = 2 * len(os.sched_getaffinity(0))
    assert run("-n", many, *show, env=clean).stdout == "1\n" * many
    assert run("-n", 1, *show, env=clean).stdout == "unset\n"
    assert run("-n", 2, *show, env={**clean, "OMP_NUM_THREADS": "7"}).stdout == "7\n" * 2


def test_variables_of_the_pes(run, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    # One write each: lines of two PEs may mix otherwise.
    program.write_text("import os; os.write(1, '{ONE} {WEFT_STAGING}\\n'.format(**os.environ).encode())")
    options = ("--env", "ONE=a=b c", "--env", "WEFT_STAGING=host")
    assert run("-n", 2, *options, program).stdout == "a=b c host\n" * 2
    assert run("-n", 1, *options, "--staging", "device", program).stdout == "a=b c device\n"
    for wrong in ("ONE", "=1"):
        outcome = run("-n", 1, "--env", wrong, program)
        assert f"--env takes NAME=VALUE, not '{wrong}'" in outcome.stderr and outcome.exit_code == 2
    outcome = run("-n", 1, "--env", "WEFT_PE=1", program)
    assert "sets WEFT_PE for each PE" in outcome.stderr and outcome.exit_code == 2
    outcome = run("-n", 1, "--env", "WEFT_STAGING=both", program)
    assert "WEFT_STAGING='both': choose device or host" in outcome.stderr and outcome.exit_code == 2


def test_weft_alone_prints_its_help_and_its_version(start_command) -> None:
    weft = [sys.executable, "-m", "weft"]
    alone = start_command(weft).wait()
    assert (alone.exit_code, alone.stderr) == (0, "")
    assert alone.stdout == start_command([*weft, "--help"]).wait().stdout
    version = start_command([*weft, "--version"]).wait()
    assert version.exit_code == 0
    assert version.stdout.startswith("weft ") and version.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("weft ru", {"run "}),
        ("weft run --la", {"--label "}),
        ("weft run --bind ", {"core", "none"}),
        ("weft mpicx", {"mpicxx "}),
    ],
)
def test_shells_complete(tmp_path: Path, line: str, expected: set[str]) -> None:
    answer = tmp_path / "answer"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    subprocess.run([sys.executable, "-m", "weft"], env={**os.environ, **asked}, check=True, timeout=60)
    assert set(answer.read_text().split("\n")) == expected
