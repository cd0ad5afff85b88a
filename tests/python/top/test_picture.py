"""What the view draws, and the picture of docs/top.md.

After a change of the view write the picture anew: python tests/python/top/test_picture.py
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from weft._top.jobs import JobInfo
from weft._top.pages import Page, Transfer
from weft._top.samples import PathRate, PeSample, Reading, at_start, path_rates, sample, shares
from weft._top.view import COLUMNS, HELP, duration, pes, picture, quantity, size

PICTURE = Path(__file__).resolve().parents[3] / "docs" / "top.svg"
MIB = 1 << 20


def pe(number: int, busy: float, communication: float, **values: object) -> PeSample:
    defaults: dict = {
        "queued": 0,
        "handled_per_s": 0.0,
        "host_bytes": 300 * MIB,
        "pool_bytes": 12 * MIB,
        "device_bytes": None,
        "step_load_s": None,
        "idle_for_s": 0.0,
        "silent_for_s": 0.0,
    }
    return PeSample(
        number, 4243 + number, busy, communication, 1 - busy - communication, **{**defaults, **values}
    )


def example() -> tuple[JobInfo, list[PeSample]]:
    """A job whose load is not balanced."""
    paths = (
        PathRate("peer-mapped", "cuda", 31_000, 31_000 * 262_144),
        PathRate("host queue", "host", 92_000, 5_300_000),
    )
    busy = {"queued": 37, "handled_per_s": 61_000, "step_load_s": 1.93, "device_bytes": 5321 * MIB}
    rest = {"handled_per_s": 30_500, "step_load_s": 0.88, "device_bytes": 2871 * MIB, "paths": paths}
    samples = [
        pe(0, 0.95, 0.04, **{**busy, "paths": paths[:1]}),
        pe(1, 0.43, 0.06, **rest),
        pe(2, 0.41, 0.05, **rest),
        pe(3, 0.0, 0.0, idle_for_s=14.2, step_load_s=0.0, host_bytes=96 * MIB),
    ]
    return JobInfo("job", 4, 4242, {one.pe: one.pid for one in samples}), samples


def draw(console: Console) -> None:
    info, samples = example()
    console.print(picture(info, samples, sort=1, notes=["", HELP], width=console.width))


def svg() -> str:
    # The colours do not depend on where it is drawn.
    console = Console(
        record=True, width=144, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    draw(console)
    text = console.export_svg(title="weft top", unique_id="weft-top")
    return re.sub(r"@font-face \{.*?\}\s*", "", text, flags=re.DOTALL)  # it names a server


def test_the_picture_of_the_page_is_that_of_the_view() -> None:
    assert PICTURE.read_text(encoding="utf-8") == svg(), "write it anew, see the head of this file"


def text_of(samples: list[PeSample], num_pes: int, **options: Any) -> list[str]:
    console = Console(width=150, file=io.StringIO(), record=True)
    info = JobInfo("job", num_pes, 7, {one.pe: one.pid for one in samples})
    console.print(picture(info, samples, **options))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_rows_are_sorted_and_bounded() -> None:
    samples = [pe(0, 0.1, 0), pe(1, 0.9, 0), pe(2, 0.5, 0)]
    busy = [column.title for column in COLUMNS].index("busy")
    for options, expected in (
        ({}, "012"),
        ({"sort": busy}, "120"),
        ({"sort": busy, "is_reversed": True}, "021"),
    ):
        lines = text_of(samples, 3, **options)
        assert "".join(line.split()[0] for line in lines[2:5]) == expected
    lines = text_of(samples, 3, sort=busy, rows=1)
    assert lines[2].split()[0] == "1"
    assert lines[3] == "and 2 PEs more"


def test_pes_that_say_nothing_and_pes_elsewhere_are_named() -> None:
    lines = text_of([pe(0, 1, 0, silent_for_s=3), pe(2, 1, 0, silent_for_s=7)], 8)
    assert (
        "PEs 0, 2 are inside a long entry method or another call of the program, PE 2 for 7.0 s: counters "
        "are those of before"
    ) in lines
    assert any(
        line.startswith("PE 1 is inside a long entry method or another call of the program for 2.0 s")
        for line in text_of([pe(1, 1, 0, silent_for_s=2)], 2)
    )
    assert any(line.startswith("PEs 1, 3-7 are not seen: on another host") for line in lines)


def test_a_narrow_terminal_shows_fewer_columns() -> None:
    _, samples = example()
    for width, lacks in ((160, []), (90, ["pool"]), (80, ["pool", "messages/s"])):
        console = Console(width=width, file=io.StringIO(), record=True)
        console.print(picture(None, samples, width=width))
        titles = console.export_text().splitlines()[1]
        known = [column for column in COLUMNS if any(column.is_known(one) for one in samples)]
        shown = [column.title for column in known if column.title not in lacks]
        assert titles.split() == " ".join(shown).split()
    assert not any("device" in line or "load" in line for line in text_of([pe(0, 1, 0)], 1))


def test_units() -> None:
    assert [quantity(value) for value in (0, 7, 1234, 999_960, 2.5e9)] == [
        "0",
        "7",
        "1.2 k",
        "1.0 M",
        "2.5 G",
    ]
    assert [size(value) for value in (12, 1 << 20, 300 << 30)] == ["12 B", "1.0 MiB", "300 GiB"]
    assert [duration(value) for value in (3e-6, 0.012, 4.25, 300, 11_000)] == [
        "3 us",
        "12 ms",
        "4.2 s",
        "5 min",
        "3 h",
    ]
    assert pes([4]) == "PE 4 is"


S = 1_000_000_000


def reading(read_s: float, *, now_s: float, idle_s: float, since_s: float = 0, **values: object) -> Reading:
    times = {
        "began_ns": S,
        "now_ns": int(now_s * S),
        "published_ns": int(now_s * S),
        "idle_ns": int(idle_s * S),
        "idle_since_ns": int(since_s * S),
    }
    defaults: dict = {
        "communication_ns": 0,
        "sent": 0,
        "handled": 0,
        "queued": 0,
        "pool_bytes": 0,
        "num_steps": 0,
        "step_load_ns": 0,
        "transfers": (),
    }
    page = Page(pid=1, pe=0, num_pes=1, launcher_pid=0, job="job", **{**defaults, **times, **values})
    return Reading(page, int(read_s * S))


def test_an_idle_pe_grows_idle_while_its_page_stays() -> None:
    before = reading(10, now_s=9, idle_s=3, since_s=9)
    after = reading(12, now_s=9, idle_s=3, since_s=9)
    assert shares(before, after) == (0, 0, 1)
    assert sample(before, after).idle_for_s == 3


def test_a_pe_inside_an_entry_method_is_busy() -> None:
    before = reading(10, now_s=9.99, idle_s=3)
    after = reading(12, now_s=9.99, idle_s=3)
    assert shares(before, after) == (1, 0, 0)
    assert sample(before, after).silent_for_s == pytest.approx(2.01)


def test_shares_of_a_pe_that_publishes() -> None:
    before = reading(10, now_s=9.9, idle_s=3, communication_ns=0)
    after = reading(12, now_s=11.9, idle_s=3.5, communication_ns=S, handled=100)
    assert shares(before, after) == pytest.approx((0.25, 0.5, 0.25))
    assert sample(before, after).handled_per_s == pytest.approx(50)
    assert shares(at_start(after), after)[2] == pytest.approx(3.5 / 10.9)


def test_a_rate_is_not_over_no_time() -> None:
    """The PE publishes just behind the first reading, and then is inside an entry method."""
    before = reading(10, now_s=9, idle_s=3, since_s=9)
    after = reading(10.15, now_s=10.000001, idle_s=4, handled=3)
    assert sample(before, after).handled_per_s <= 3 / 0.07


def test_estimates_beyond_the_time_are_cut() -> None:
    before = reading(10, now_s=9.9, idle_s=3)
    after = reading(11, now_s=10.9, idle_s=9, communication_ns=5 * S)
    assert shares(before, after) == (0, 0, 1)


def test_rates_by_path_sum_types() -> None:
    def rows(factor: int) -> tuple[Transfer, ...]:
        return (
            Transfer("put", "own PE", "host", factor, 10 * factor),
            Transfer("get", "own PE", "host", factor, factor),
            Transfer("put", "staged", "cuda", factor, 100 * factor),
        )

    before = reading(1, now_s=1, idle_s=0, transfers=rows(1)).page
    after = reading(3, now_s=3, idle_s=0, transfers=rows(5)).page
    assert path_rates(before, after, 2) == (
        PathRate("staged", "cuda", 2, 200),
        PathRate("own PE", "host", 4, 22),
    )


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
