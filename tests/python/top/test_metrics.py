"""`weft run --metrics`: what an HTTP client gets."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft._top import metrics
from weft._top.metrics import _PE_METRICS, Exporter, MetricsServer, _metric, parse_address
from weft._top.pages import Page
from weft._top.samples import Reading
from weft.launch.command import UsageError

Start = Callable[..., Any]  # see conftest.py
HANG_S = 150
_LINE = re.compile(r'(weft_\w+)(?:\{((?:\w+="[^"]*",?)*)\})? ([-+.e\d]+)')


def get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=HANG_S) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return answer.read().decode()


def address_of(job: Any) -> str:
    assert job.process.stderr is not None
    return job.process.stderr.readline().removeprefix("weft run: metrics at ").strip()


def test_values(start: Start) -> None:
    job = start(["-m", "weft", "run", "-n", "2", "--metrics", "0"])
    address = address_of(job)
    assert address.startswith("http://127.0.0.1:")
    values: dict[tuple[str, str], float] = {}
    types: dict[str, str] = {}
    for line in get(address).splitlines():
        if line.startswith("# TYPE "):
            _, _, name, types[name] = line.split()
        elif not line.startswith("#"):
            match = _LINE.fullmatch(line)
            assert match, line
            values[match[1], match[2] or ""] = float(match[3])
    assert values["weft_pes", ""] == values["weft_pes_seen", ""] == 2
    for pe in ('pe="0"', 'pe="1"'):
        assert values["weft_pe_calls_handled_total", pe] > 0
        assert values["weft_pe_idle_seconds_total", pe] > 0
        assert values["weft_pe_busy_seconds_total", pe] >= 0
        assert values["weft_pe_resident_memory_bytes", pe] > 1 << 20
    assert any(
        name == "weft_pe_transfer_bytes_total" and 'path="host queue"' in labels and value > 0
        for (name, labels), value in values.items()
    )
    assert {name for name, _ in values} <= types.keys()
    assert all((kind == "counter") == name.endswith("_total") for name, kind in types.items())
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(f"{address}/else")
    assert job.end() == ""


def test_every_name_is_documented() -> None:
    source = Path(sys.modules["weft._top.metrics"].__file__ or "").read_text(encoding="utf-8")
    page = (Path(__file__).resolve().parents[3] / "docs" / "top.md").read_text(encoding="utf-8")
    names = set(re.findall(r'"(weft_\w+)"', source))
    assert names == set(re.findall(r"`(weft_pe\w+)`", page))


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        argv = [sys.executable, "-m", "weft", "run", "-n", "1", "--metrics", str(port), sys.executable]
        outcome = subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S)
    assert outcome.returncode == 2
    assert outcome.stderr == f"weft run: --metrics {port}: Address already in use; is the port taken?\n"


def test_addresses() -> None:
    assert parse_address("9100") == ("127.0.0.1", 9100)
    assert parse_address("0.0.0.0:9100") == ("0.0.0.0", 9100)
    for wrong in ("", "x", "70000", "host:"):
        with pytest.raises(UsageError, match="give a port"):
            parse_address(wrong)


def test_a_client_that_goes_is_not_reported(capfd: pytest.CaptureFixture[str]) -> None:
    server = MetricsServer("0")
    for error in (BrokenPipeError(), ConnectionResetError(), ValueError("a mistake of ours")):
        try:
            raise error
        except (OSError, ValueError):
            server._server.handle_error(None, ("127.0.0.1", 1))
    server.close()
    errors = capfd.readouterr().err
    assert errors.count("Traceback") == 1
    assert "a mistake of ours" in errors


def test_no_name_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda name="": pytest.fail(f"the name of {name} is looked up"))
    MetricsServer("127.0.0.1:0").close()


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_an_address_of_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is not bound: not every host has one."""
    families = []
    monkeypatch.setattr(metrics._Server, "server_activate", lambda server: None)

    def bind(server: metrics._Server) -> None:
        families.append(server.address_family)
        server.server_name, server.server_port = str(server.server_address[0]), 9100

    monkeypatch.setattr(metrics._Server, "server_bind", bind)
    server = MetricsServer("[::1]:9100")
    server.close()
    assert families == [socket.AF_INET6]
    assert server.url == "http://[::1]:9100/metrics"


def test_a_counter_does_not_fall() -> None:
    """An idle time may end before it was read last: a counter that falls counts from 0 for Prometheus."""
    exporter = Exporter(1)
    (idle,) = (metric for metric in _PE_METRICS if metric.name == "weft_pe_idle_seconds_total")
    (queue,) = (metric for metric in _PE_METRICS if metric.name == "weft_pe_queue_length")

    def reading(idle_since_ns: int, idle_ns: int, read_ns: int, queued: int) -> Reading:
        times = (0, 100, idle_ns, idle_since_ns, 0, 100)
        return Reading(Page(1, 0, 1, 1, "job", *times, 0, 0, queued, 0, 0, 0, ()), read_ns)

    before, after = reading(100, 50, 300, 7), reading(0, 245, 310, 3)
    assert exporter._value(idle, before) == 250e-9
    assert exporter._value(idle, after) == 250e-9
    assert [exporter._value(queue, one) for one in (before, after)] == [7, 3]


def test_labels_are_escaped() -> None:
    assert "".join(_metric("weft_x", "Text.", [({"a": 'b"\\'}, 1)])) == (
        '# HELP weft_x Text.\n# TYPE weft_x gauge\nweft_x{a="b\\"\\\\"} 1\n'
    )
