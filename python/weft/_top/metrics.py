"""`weft run --metrics`: what the PEs do, for Prometheus (docs/top.md lists the names).

The text format: https://prometheus.io/docs/instrumenting/exposition_formats/

Threads: those of the server. They read pages and nothing else of the launcher, and run nvidia-smi.
"""

from __future__ import annotations

import contextlib
import http.server
import os
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weft._top.memory import DeviceMemory, resident_bytes
from weft._top.pages import MOST_QUEUED, DamagedPageError, Page, close_all, find
from weft._top.samples import Reading
from weft.launch.command import UsageError

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LOOPBACK = "127.0.0.1"
_PATHS = ("/", "/metrics")
# A client that sends nothing keeps a thread for so long.
_CLIENT_S = 5.0

_Labels = Mapping[str, str]


def parse_address(text: str) -> tuple[str, int]:
    """ "9100" is a port of the loopback interface, "0.0.0.0:9100" one that other hosts reach.

    Raises: UsageError.
    """
    address, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 0xFFFF:
        raise UsageError(f"--metrics is '{text}': give a port, or an address and a port as in 0.0.0.0:9100")
    return address.strip("[]") or _LOOPBACK, int(port)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], exporter: Exporter) -> None:
        self.exporter = exporter
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """As that of http.server, which also asks the name service for the name of the host, and may wait."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a client that has gone: stderr is the job's."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = _CLIENT_S

    def do_GET(self) -> None:
        """The name is that of http.server."""
        if self.path.partition("?")[0] not in _PATHS:
            self.send_error(404, "see /metrics")
            return
        text = self.server.exporter.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", _CONTENT_TYPE)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: stderr is the job's."""


class MetricsServer:
    """Serves the metrics of the PEs that this process, a launcher, has started."""

    def __init__(self, text: str) -> None:
        """Listens at `text`, see parse_address(), and does not answer yet.

        Raises:
            UsageError: the address cannot be used.
        """
        address = parse_address(text)
        try:
            self._server = _Server(address, Exporter(os.getpid()))
        except OSError as error:
            raise UsageError(f"--metrics {text}: {error.strerror}; is the port taken?") from None
        host, port = self._server.server_name, self._server.server_port
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def start(self) -> None:
        """Answers from now on. Call it when the PEs have been forked."""
        self._thread.start()

    def close(self) -> None:
        """Stops listening."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


@dataclass(frozen=True)
class _PeMetric:
    """A value of each PE. A name in _total is a counter."""

    name: str
    help: str
    value: Callable[[Reading], float]


def _busy_s(reading: Reading) -> float:
    page = reading.page
    return (reading.times_ns - page.began_ns - reading.idle_ns - page.communication_ns) / 1e9


_PE_METRICS = (
    _PeMetric(
        "weft_pe_busy_seconds_total",
        "Time in which the PE was neither idle nor in communication.",
        _busy_s,
    ),
    _PeMetric(
        "weft_pe_communication_seconds_total",
        "Time in which the machine moved bytes while the PE had work, from samples.",
        lambda reading: reading.page.communication_ns / 1e9,
    ),
    _PeMetric(
        "weft_pe_idle_seconds_total",
        "Time in which the PE had nothing to do.",
        lambda reading: reading.idle_ns / 1e9,
    ),
    _PeMetric(
        "weft_pe_calls_sent_total",
        "Calls and messages of the program that the PE has sent.",
        lambda reading: reading.page.sent,
    ),
    _PeMetric(
        "weft_pe_calls_handled_total",
        "Calls and messages of the program that the PE has handled.",
        lambda reading: reading.page.handled,
    ),
    _PeMetric(
        "weft_pe_queue_length",
        f"Pieces of work in the queue of the PE, counted up to {MOST_QUEUED}.",
        lambda reading: reading.page.queued,
    ),
    _PeMetric(
        "weft_pe_resident_memory_bytes",
        "Resident memory of the process of the PE.",
        lambda reading: resident_bytes(reading.page.pid),
    ),
    _PeMetric(
        "weft_pe_pool_memory_bytes",
        "Memory that the message pool of the PE keeps for reuse.",
        lambda reading: reading.page.pool_bytes,
    ),
    _PeMetric(
        "weft_pe_balancing_steps_total",
        "Steps of load balancing for which the PE has reported loads.",
        lambda reading: reading.page.num_steps,
    ),
    _PeMetric(
        "weft_pe_step_load_seconds",
        "Load of the chares of the PE in the last of these steps.",
        lambda reading: reading.page.step_load_ns / 1e9,
    ),
)


class Exporter:
    """Makes the text for the PEs of a launcher."""

    def __init__(self, launcher_pid: int) -> None:
        self._launcher_pid = launcher_pid
        self._devices = DeviceMemory()
        self._lock = threading.Lock()
        # By job, PE and name. A counter must not fall, but times are estimates.
        self._counters: dict[tuple[str, int, str], float] = {}

    def text(self) -> str:
        """What the PEs say now."""
        readings = []
        sources = find()
        for source in sources:
            with contextlib.suppress(DamagedPageError):  # weft_pes_seen shows that one is missing
                reading = Reading(source.read(), time.monotonic_ns())
                if reading.page.launcher_pid == self._launcher_pid:
                    readings.append(reading)
        close_all(sources)
        readings.sort(key=lambda reading: reading.page.pe)
        with self._lock:
            return "".join(self._lines(readings))

    def _lines(self, readings: list[Reading]) -> Iterator[str]:
        num_pes = readings[0].page.num_pes if readings else 0
        yield from _metric("weft_pes", "PEs of the job.", [({}, num_pes)])
        yield from _metric("weft_pes_seen", "PEs whose values are here.", [({}, len(readings))])
        for metric in _PE_METRICS:
            values = [({"pe": str(reading.page.pe)}, self._value(metric, reading)) for reading in readings]
            yield from _metric(metric.name, metric.help, values)
        devices = self._devices.current()
        pages = [reading.page for reading in readings]
        on_devices = [({"pe": str(page.pe)}, devices[page.pid]) for page in pages if page.pid in devices]
        yield from _metric(
            "weft_pe_device_memory_bytes", "GPU memory of the process, by nvidia-smi.", on_devices
        )
        yield from _transfers(pages)

    def _value(self, metric: _PeMetric, reading: Reading) -> float:
        value = metric.value(reading)
        if not metric.name.endswith("_total"):
            return value
        key = (reading.page.job, reading.page.pe, metric.name)
        self._counters[key] = max(self._counters.get(key, 0), value)
        return self._counters[key]


def _transfers(pages: list[Page]) -> Iterator[str]:
    rows = [
        ({"pe": str(page.pe), "type": row.type, "path": row.path, "memory": row.memory}, row)
        for page in pages
        for row in page.transfers
    ]
    yield from _metric(
        "weft_pe_transfers_total",
        "Transfers that the PE has started, by type, path and memory kind.",
        [(labels, row.messages) for labels, row in rows],
    )
    yield from _metric(
        "weft_pe_transfer_bytes_total",
        "Bytes of these transfers.",
        [(labels, row.bytes) for labels, row in rows],
    )


def _metric(name: str, text: str, values: Iterable[tuple[_Labels, float]]) -> Iterator[str]:
    yield f"# HELP {name} {text}\n# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}\n"
    for labels, value in values:
        pairs = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        yield f"{name}{{{pairs}}} {value}\n" if pairs else f"{name} {value}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
