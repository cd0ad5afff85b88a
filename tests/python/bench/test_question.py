"""Sizes as people write them, and loops that fit their time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft_bench.errors import BenchError
from weft_bench.gpus import PAIR, SAME
from weft_bench.question import (
    GPU_RATE,
    STAGED_RATE,
    WINDOW,
    Question,
    _last_level_cache_bytes,
    default_sizes,
    distinct_sizes,
    parse_sizes,
    without_buffers,
)


def test_sizes_have_units_of_1024():
    assert parse_sizes("0, 8,1K,64KiB,4M,1g") == (0, 8, 1 << 10, 64 << 10, 4 << 20, 1 << 30)


@pytest.mark.parametrize("text", ["", "8,", "-8", "8Q", "eight", "1.5K"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(BenchError, match="is not a message size"):
        parse_sizes(text)


@given(
    bench=st.sampled_from(["latency", "bandwidth", "rate"]),
    memory=st.sampled_from(["host", "emulated", "cuda"]),
    size=st.integers(0, 1 << 30),
    message_us=st.floats(0.05, 1000.0),
    bytes_per_us=st.floats(1000.0, 1e6),
)
def test_loops_take_about_the_same_time_whatever_a_message_costs(
    bench, memory, size, message_us, bytes_per_us
):
    (step,) = Question(bench, (size,), memory).steps(message_us, bytes_per_us)
    messages = 2 if bench == "latency" else WINDOW
    estimate_us = step.iterations * messages * (message_us + size / bytes_per_us)
    budget_us, least, least_warmup = (150_000, 5, 2) if memory == "host" else (60_000, 1, 1)
    if bench != "latency" and memory == "host" and WINDOW * size >= 1 << 30:
        least, least_warmup = 1, 1
    assert step.iterations >= least
    assert least_warmup <= step.warmup
    assert min(4, step.iterations) <= step.warmup <= max(least_warmup, 4, step.iterations // 10)
    assert estimate_us <= budget_us * 1.001 or step.iterations == least


@pytest.mark.parametrize("bench", ["latency", "bandwidth"])
def test_processes_that_share_a_gpu_have_their_time(bench):
    (shared,) = Question(bench, (8,), "cuda", devices=SAME).steps(10.0)
    (pair,) = Question(bench, (8,), "cuda", devices=PAIR).steps(10.0)
    assert shared.iterations == pytest.approx(pair.iterations * 10 / 150, abs=1)


@pytest.mark.parametrize("bench", ["latency", "bandwidth"])
def test_what_a_new_buffer_on_a_gpu_costs_once_is_not_timed(bench):
    # A channel posts a new buffer for its second window and maps it in its third.
    steps = Question(bench, default_sizes(bench, "cuda"), "cuda", devices=PAIR).steps(10.0, GPU_RATE)
    assert [step for step in steps if step.warmup < 4] == []


@pytest.mark.parametrize("bench", ["latency", "bandwidth"])
@pytest.mark.parametrize(("message_us", "bytes_per_us"), [(10.0, GPU_RATE), (40.0, STAGED_RATE)])
@pytest.mark.parametrize("devices", [PAIR, SAME])
def test_a_sweep_of_device_memory_takes_seconds(bench, message_us, bytes_per_us, devices):
    question = Question(bench, default_sizes(bench, "cuda"), "cuda", devices=devices)
    one_way_us = max(message_us, 150.0 if devices == SAME else 0.0)
    messages = 2 if bench == "latency" else WINDOW
    seconds = sum(
        (step.iterations + step.warmup) * messages * (one_way_us + step.size_bytes / bytes_per_us) * 1e-6
        for step in question.steps(message_us, bytes_per_us)
    )
    assert seconds < 4
    assert question.timeout_s > 10 * seconds


def test_a_step_is_one_argument_of_a_measuring_program():
    (step,) = Question("latency", (8,)).steps(1.0)
    assert step.argument() == f"8:{step.iterations}:{step.warmup}"


def test_distinct_buffers_are_out_of_cache_and_one_for_each_message_of_a_window():
    sizes = (64 << 10, 1 << 20, 4 << 20, 64 << 20)
    question = Question("bandwidth", sizes, distinct=True)
    for step in question.steps(1.0):
        assert step.size_bytes * step.buffers >= 2 * _last_level_cache_bytes()
        assert step.buffers >= WINDOW or step.size_bytes * step.buffers >= 512 << 20
        assert step.argument().endswith(f":{step.buffers}")
    assert [step.buffers for step in Question("bandwidth", sizes).steps(1.0)] == [1] * 4


def test_small_messages_have_no_distinct_buffers():
    assert distinct_sizes((8, 65535, 65536, 1 << 20)) == (65536, 1 << 20)


@pytest.mark.parametrize(
    ("question", "path"),
    [
        (Question("bandwidth", (8,)), "tag, one buffer"),
        (Question("bandwidth", (8,), distinct=True), "tag, distinct buffers"),
        (Question("bandwidth", (8,), "cuda", devices=PAIR), "tag, GPU pair"),
        (Question("latency", (8,)), "tag"),
    ],
)
def test_a_path_ends_with_the_buffers_where_there_is_a_choice(question, path):
    assert question.path("tag") == path
    assert without_buffers(path) == ("tag, GPU pair" if question.devices else "tag")
    assert without_buffers(question.path("")) in ("", "GPU pair")
