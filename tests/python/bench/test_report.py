"""Tables and plots of records."""

import io

import pytest
from rich.console import Console

from weft_bench import plot
from weft_bench.errors import BenchError
from weft_bench.report import best_of, show, size_label, value_label
from weft_bench.schedule import Outcome


@pytest.fixture
def records(make_record):
    series = [
        ({"path": ""}, 0.25),
        ({"system": "ucx", "model": "machine", "path": "tag, default settings"}, 0.125),
        ({"system": "ucx", "model": "machine", "path": "tag, Weft's settings"}, 0.0625),
    ]
    return [
        make_record(size_bytes=size, median=value, min=value / 2, max=value * 2, **fields)
        for fields, value in series
        for size in (0, 8, 4 << 20)
    ]


def shown(outcome):
    console = Console(file=io.StringIO(), width=150)
    show(outcome, console)
    return console.file.getvalue()


def test_the_table_has_every_size_series_and_median(records):
    text = shown(Outcome(records=records))
    for expected in ("0.250", "0.125", "0.0625", "4M", "median of 5 runs", "a machine, 2 cores"):
        assert expected in text


def test_what_is_absent_and_what_failed_is_told_with_the_reason():
    text = shown(Outcome(absent={"ucx": "pip install [it]"}, failed={"weft": "it fell over"}))
    assert "absent: ucx: pip install [it]" in text
    assert "failed: weft: it fell over" in text


def test_the_better_of_two_ways_is_the_reference(make_record, records):
    assert {record.median for record in best_of(records, "ucx").values()} == {0.0625}
    rates = [
        make_record(metric="rate_Mps", unit="M/s", median=value, min=1.0, max=9.0) for value in (3.0, 5.0)
    ]
    assert best_of(rates, "weft")[8].median == 5.0


@pytest.fixture
def bandwidths(make_record):
    series = {
        "tag, default settings": (8.0, 12.0),
        "tag, Weft's settings": (10.0, 10.0),
        "am, Weft's settings": (99.0, 99.0),
    }
    return [
        make_record(
            bench="bandwidth",
            metric="bandwidth_GBps",
            unit="GB/s",
            system="ucx",
            model="machine",
            path=f"{path}, {buffers}",
            size_bytes=size,
            median=value,
            min=value,
            max=value,
        )
        for buffers in ("one buffer", "distinct buffers")
        for path, values in series.items()
        for size, value in zip((64 << 10, 4 << 20), values, strict=True)
    ]


def test_each_kind_of_buffers_has_its_table_and_its_best_setting(bandwidths):
    text = shown(Outcome(records=bandwidths))
    for buffers in ("one buffer", "distinct buffers"):
        assert text.count(f"host memory, {buffers}") == 1
    assert text.count("64K 10.0 GB/s (Weft's settings), 4M 12.0 GB/s (default settings)") == 2
    assert text.count("Weft's settings of UCX are the slower ones") == 2
    assert text.count("with others: 4M 1.20 x (default settings)") == 2


def test_there_is_no_warning_where_the_settings_of_weft_are_the_best(bandwidths):
    ours = [record for record in bandwidths if record.size_bytes == 64 << 10]
    assert "slower" not in shown(Outcome(records=ours))
    others = [record for record in bandwidths if "Weft" not in record.path]
    assert "slower" not in shown(Outcome(records=others))


def test_labels():
    assert [size_label(size) for size in (0, 8, 1000, 1024, 1536, 4 << 20)] == [
        "0", "8", "1000", "1K", "1536", "4M",
    ]  # fmt: skip
    assert [value_label(value) for value in (0.0712, 1.5, 123.4, 2946.3)] == ["0.0712", "1.50", "123", "2946"]


def test_a_plot_is_a_png(records, tmp_path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    path = tmp_path / "new" / "latency.png"
    plot.write_plot(path, records)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_a_plot_of_both_kinds_of_buffers_has_two_pictures(bandwidths, records, tmp_path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    image = pytest.importorskip("matplotlib.image", reason="plots need matplotlib")
    plot.write_plot(tmp_path / "two.png", bandwidths)
    plot.write_plot(tmp_path / "one.png", records)
    two, one = (image.imread(tmp_path / name) for name in ("two.png", "one.png"))
    assert two.shape[1] == 2 * one.shape[1]


def test_a_plot_of_nothing_is_refused(tmp_path):
    with pytest.raises(BenchError, match="nothing was measured"):
        plot.write_plot(tmp_path / "latency.png", [])
    assert not (tmp_path / "latency.png").exists()
