"""Sizes as people write them, and loops that fit their time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.bench.errors import BenchError
from weft.bench.question import WINDOW, Question, parse_sizes


def test_sizes_have_units_of_1024():
    assert parse_sizes("0, 8,1K,64KiB,4M,1g") == (0, 8, 1 << 10, 64 << 10, 4 << 20, 1 << 30)


@pytest.mark.parametrize("text", ["", "8,", "-8", "8Q", "eight", "1.5K"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(BenchError, match="is not a message size"):
        parse_sizes(text)


@given(
    bench=st.sampled_from(["latency", "bandwidth", "rate"]),
    size=st.integers(0, 1 << 30),
    message_us=st.floats(0.05, 1000.0),
)
def test_loops_take_about_the_same_time_whatever_a_message_costs(bench, size, message_us):
    (step,) = Question(bench, (size,)).steps(message_us)
    messages = 2 if bench == "latency" else WINDOW
    estimate_us = step.iterations * messages * (message_us + size / 10_000)
    assert step.iterations >= 5
    assert step.warmup >= 2
    assert estimate_us <= 150_000 or step.iterations == 5


def test_a_step_is_one_argument_of_a_measuring_program():
    (step,) = Question("latency", (8,)).steps(1.0)
    assert step.argument() == f"8:{step.iterations}:{step.warmup}"
