"""Records: what is written is read back; what is wrong is refused with the field named."""

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft_bench.errors import BenchError
from weft_bench.record import (
    LANGUAGES,
    MEMORIES,
    METRICS,
    MODELS,
    SYSTEMS,
    Record,
    read_records,
    write_records,
)

DESIGN_FIELDS = (
    "bench system model language memory path pes size_bytes metric unit "
    "median min max runs warmup git host date"
)


def test_json_has_exactly_the_fields_of_the_design_in_their_order(make_record):
    assert list(json.loads(make_record().to_json())) == DESIGN_FIELDS.split()


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    values=st.lists(finite, min_size=3, max_size=3).map(sorted),
    metric=st.sampled_from(sorted(METRICS)),
    names=st.tuples(*(st.sampled_from(names) for names in (SYSTEMS, MODELS, LANGUAGES, MEMORIES))),
    text=st.text(),
    size=st.integers(0, 1 << 40),
)
def test_every_record_survives_json(make_record, values, metric, names, text, size):
    record = make_record(
        min=values[0],
        median=values[1],
        max=values[2],
        metric=metric,
        unit=METRICS[metric][0],
        size_bytes=size,
        host=text,
        path=text,
        **dict(zip(("system", "model", "language", "memory"), names, strict=True)),
    )
    line = record.to_json()
    assert "\n" not in line
    assert Record.from_json(line) == record


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("system", "wefft"),
        ("model", "tag"),
        ("language", "fortran"),
        ("memory", "device"),
        ("metric", "latency_ms"),
        ("unit", "ms"),
        ("pes", 0),
        ("size_bytes", -1),
        ("runs", 0),
        ("warmup", -1),
        ("median", math.nan),
        ("median", 0.6),
        ("max", math.inf),
    ],
)
def test_a_wrong_field_is_refused_by_name(make_record, field, value):
    named = "median" if field == "max" else field
    with pytest.raises(BenchError, match=named):
        make_record(**{field: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fields: fields.pop("git"), "lacks git"),
        (lambda fields: fields.update(colour="red"), "unknown fields colour"),
        (lambda fields: fields.update(runs="five"), "runs must be int"),
        (lambda fields: fields.update(runs=True), "runs must be int"),
        (lambda fields: fields.update(median="0.3"), "median must be float"),
    ],
)
def test_json_that_is_no_record_is_refused(make_record, change, message):
    fields = dataclasses.asdict(make_record())
    change(fields)
    with pytest.raises(BenchError, match=message):
        Record.from_json(json.dumps(fields))


def test_whole_numbers_stand_for_floats(make_record):
    fields = dataclasses.asdict(make_record()) | {"min": 1, "median": 2, "max": 3}
    assert Record.from_json(json.dumps(fields)).median == 2.0


def test_files_have_one_record_per_line(make_record, tmp_path):
    records = [make_record(size_bytes=size) for size in (1, 8, 64)]
    path = tmp_path / "new" / "figures.jsonl"
    write_records(path, records)
    assert len(path.read_text().splitlines()) == 3
    assert list(read_records(path)) == records


def test_a_broken_line_is_named_with_file_and_number(make_record, tmp_path):
    path = tmp_path / "figures.jsonl"
    path.write_text(make_record().to_json() + "\n\n{broken\n")
    with pytest.raises(BenchError, match=r"figures\.jsonl, line 3.*not JSON"):
        list(read_records(path))
