"""Published ratios beside ours: the largest of comparable records, and nothing made up."""

import pytest

from goals.published import FIGURES, ours
from goals.report import published_table
from weft_bench.report import make_console

(LATENCY,) = [f for f in FIGURES if (f.text, f.system) == ("latency", "Charm++")]
(EAGER,) = [f for f in FIGURES if f.text == "latency of eager messages"]
(BANDWIDTH,) = [f for f in FIGURES if (f.text, f.system) == ("bandwidth", "Charm++")]
(JACOBI,) = [f for f in FIGURES if (f.text, f.system) == ("Jacobi3D, communication", "Charm++")]


@pytest.fixture
def gpu_record(make_record):
    """Makes a record of entry methods with GPU memory."""

    def make(median, path, **changes):
        fields = {"model": "messaging", "memory": "cuda", "path": path, "min": median, "max": median}
        return make_record(median=median, **{**fields, **changes})

    return make


def test_the_largest_ratio_of_the_faster_path_counts(gpu_record):
    records = [
        gpu_record(20.0, "staged, GPU pair"),
        gpu_record(5.0, "tagged, GPU pair"),
        gpu_record(4.0, "active, GPU pair"),
        gpu_record(900.0, "staged, GPU pair", size_bytes=1 << 20),
        gpu_record(100.0, "tagged, GPU pair", size_bytes=1 << 20),
    ]
    assert ours(LATENCY, records).value == 9.0
    assert ours(EAGER, records).value == 5.0, "only of small messages"
    assert ours(EAGER, records).direct.path == "active, GPU pair"


def test_a_channel_past_ucx_is_compared_too(gpu_record):
    records = [gpu_record(20.0, "staged, GPU pair"), gpu_record(2.0, "peer-mapped, GPU pair")]
    assert ours(LATENCY, records).value == 10.0


def test_more_bandwidth_is_better(gpu_record):
    fields = {"bench": "bandwidth", "metric": "bandwidth_GBps", "unit": "GB/s"}
    records = [
        gpu_record(300.0, "tagged, GPU pair", **fields),
        gpu_record(30.0, "staged, GPU pair", **fields),
    ]
    assert ours(BANDWIDTH, records).value == 10.0


def test_communication_is_what_counts_of_jacobi3d(gpu_record):
    fields = {"bench": "jacobi3d", "metric": "time_s", "unit": "s"}
    rest = "weak, 8x8x8 points, ODF 1"
    records = [
        gpu_record(part * way, f"{name}, {label}, {rest}", **fields)
        for name, part in (("overall", 10.0), ("communication", 1.0))
        for label, way in (("direct", 1.0), ("staged", 12.0 if name == "communication" else 50.0))
    ]
    assert ours(JACOBI, records).value == 12.0


@pytest.mark.parametrize(
    "change",
    [
        {"memory": "emulated"},
        {"size_bytes": 16},
        {"host": "another machine"},
        {"pes": 4},
        {"language": "python"},
    ],
)
def test_what_cannot_be_compared_is_not(gpu_record, change):
    records = [gpu_record(20.0, "staged, GPU pair"), gpu_record(4.0, "tagged, GPU pair", **change)]
    assert ours(LATENCY, records) is None
    assert ours(LATENCY, [gpu_record(20.0, "staged, same GPU"), gpu_record(4.0, "tagged, GPU pair")]) is None


def test_the_table_says_what_was_not_measured(gpu_record, capsys):
    make_console().print(published_table([]))
    text = capsys.readouterr().out
    assert text.count("not measured") == len(FIGURES)
    make_console().print(published_table([gpu_record(20.0, "staged"), gpu_record(4.0, "tagged")]))
    text = capsys.readouterr().out
    assert text.count("not measured") == len(FIGURES) - 2, "the latency, and that of eager messages"
    assert "5.0 x" in text
