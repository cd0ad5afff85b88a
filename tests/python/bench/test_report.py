"""Tables and plots of records."""

import io

import pytest
from rich.console import Console

from weft.bench import plot
from weft.bench.errors import BenchError
from weft.bench.report import best_of, show, size_label, value_label
from weft.bench.schedule import Outcome


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


def test_a_plot_of_nothing_is_refused(tmp_path):
    with pytest.raises(BenchError, match="nothing was measured"):
        plot.write_plot(tmp_path / "latency.png", [])
    assert not (tmp_path / "latency.png").exists()
