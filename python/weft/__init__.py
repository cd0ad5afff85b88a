"""GPU-aware, message-driven parallel programming.

    import weft

    class Hello(weft.Chare):
        def greet(self, name):
            return f"{name}, this is chare {self.index} on PE {weft.my_pe()}"

    async def main():
        chares = weft.Array(Hello, 8)
        for line in await chares.greet.call("world"):
            print(line)

    weft.run(main)

``python app.py`` runs it on one PE, ``weft run -n 4 app.py`` on four. Every PE runs the script up to
weft.run(main); main then runs on PE 0.

Arguments of calls are values: a change after the call never reaches the callee. Only device memory and
``weft.nocopy(array)`` are sent in place: they must not be changed before ``await proxy[i].method(array)`` has
returned or the result of ``call`` is there. A call with large arguments may be overtaken by a later one with
small arguments.

An exception that an entry method raises arrives with its own type, and is a weft.RemoteError too: ``except
ValueError`` catches it, and so does ``except weft.RemoteError``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if "WEFT_TIME_LIMIT" in os.environ:
    from weft._job.time_limit import watch

    watch()
    del watch

if TYPE_CHECKING:
    __version__: str
    from weft import emulated, load_balancing, pgas
    from weft._await.asyncio_edge import as_asyncio, as_concurrent, asyncio_future
    from weft._await.timeouts import timeout
    from weft._await.waiting import as_completed, gather, wait
    from weft._buffers.packing import pack
    from weft._buffers.registration import register
    from weft._chare.checkpoint import checkpoint, has_checkpoint, restore
    from weft._chare.post_entry import post_entry
    from weft._chare.recovery import protect, recovered, recoveries, resize, revive
    from weft._chare.reducers import Reducer
    from weft._chare.when import when
    from weft._core import (
        AggregatedProxy,
        Array,
        Channel,
        Chare,
        CollectionProxy,
        CombinedSection,
        DeviceArray,
        ElementProxy,
        EntryMethod,
        Error,
        Future,
        Group,
        LostPE,
        Operation,
        QueuedChannel,
        ReceiveBuffer,
        RemoteError,
        Section,
        Singleton,
        Stream,
        combine,
        device_group,
        exit,
        my_pe,
        nocopy,
        num_pes,
        post_from_any_thread,
        progress,
        quiescence,
        sleep,
        stream_done,
        yield_now,
    )
    from weft._job.devices import Device, device
    from weft._job.headers import include_dir
    from weft._job.run import run
    from weft._job.transport import PeerTransports, TransportUse, peer_transports, transport_use
    from weft._pool.pool import Pool
    from weft._session.session import Session, SessionTask, session
    from weft._support.progress import ProgressBar, progress_bar

__all__ = [
    "AggregatedProxy",
    "Array",
    "Channel",
    "Chare",
    "CollectionProxy",
    "CombinedSection",
    "Device",
    "DeviceArray",
    "ElementProxy",
    "EntryMethod",
    "Error",
    "Future",
    "Group",
    "LostPE",
    "Operation",
    "PeerTransports",
    "Pool",
    "ProgressBar",
    "QueuedChannel",
    "ReceiveBuffer",
    "Reducer",
    "RemoteError",
    "Section",
    "Session",
    "SessionTask",
    "Singleton",
    "Stream",
    "TransportUse",
    "as_asyncio",
    "as_completed",
    "as_concurrent",
    "asyncio_future",
    "checkpoint",
    "combine",
    "device",
    "device_group",
    "emulated",
    "exit",
    "gather",
    "has_checkpoint",
    "include_dir",
    "load_balancing",
    "my_pe",
    "nocopy",
    "num_pes",
    "pack",
    "peer_transports",
    "pgas",
    "post_entry",
    "post_from_any_thread",
    "progress",
    "progress_bar",
    "protect",
    "quiescence",
    "recovered",
    "recoveries",
    "register",
    "resize",
    "restore",
    "revive",
    "run",
    "session",
    "sleep",
    "stream_done",
    "timeout",
    "transport_use",
    "wait",
    "when",
    "yield_now",
]


# A name is loaded when it is first used: the `weft` command starts fast, `weft info` can say what is missing,
# and a program that uses neither asyncio nor NumPy does not wait for them.
_HOMES = {
    "checkpoint": "weft._chare.checkpoint",
    "has_checkpoint": "weft._chare.checkpoint",
    "restore": "weft._chare.checkpoint",
    "protect": "weft._chare.recovery",
    "recovered": "weft._chare.recovery",
    "recoveries": "weft._chare.recovery",
    "resize": "weft._chare.recovery",
    "revive": "weft._chare.recovery",
    "Device": "weft._job.devices",
    "device": "weft._job.devices",
    "include_dir": "weft._job.headers",
    "pack": "weft._buffers.packing",
    "as_asyncio": "weft._await.asyncio_edge",
    "as_concurrent": "weft._await.asyncio_edge",
    "asyncio_future": "weft._await.asyncio_edge",
    "Reducer": "weft._chare.reducers",
    "Pool": "weft._pool.pool",
    "Session": "weft._session.session",
    "SessionTask": "weft._session.session",
    "session": "weft._session.session",
    "post_entry": "weft._chare.post_entry",
    "register": "weft._buffers.registration",
    "run": "weft._job.run",
    "PeerTransports": "weft._job.transport",
    "TransportUse": "weft._job.transport",
    "peer_transports": "weft._job.transport",
    "transport_use": "weft._job.transport",
    "ProgressBar": "weft._support.progress",
    "progress_bar": "weft._support.progress",
    "timeout": "weft._await.timeouts",
    "as_completed": "weft._await.waiting",
    "gather": "weft._await.waiting",
    "wait": "weft._await.waiting",
    "when": "weft._chare.when",
    "_itself": "weft._chare.migration",
    "_remote_error": "weft._support.remote_errors",
    "_take": "weft._chare.migration",
}
_SUBMODULES = ("emulated", "load_balancing", "pgas")
# Functions that pickles and checkpoints name.
_PICKLED = (
    "_copied_future",
    "_decode",
    "_entry_method_at",
    "_future_at",
    "_itself",
    "_moved_channel",
    "_remote_error",
    "_set_copied_future",
    "_take",
)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _version()
    if name != "_core" and name not in __all__ and name not in _PICKLED:
        raise AttributeError(f"module 'weft' has no attribute '{name}'")
    import importlib

    from weft._public import name_public_module
    from weft._ucx_hooks import shorten_wait

    shorten_wait()
    if name in _SUBMODULES:
        return importlib.import_module(f"weft.{name}")
    home = _home_of(name)
    module = importlib.import_module(home)
    here = [one for one in (*__all__, *_PICKLED) if one not in _SUBMODULES and _home_of(one) == home]
    name_public_module(__name__, [getattr(module, one) for one in here])
    if name == "_core":
        return module
    found = getattr(module, name)
    globals()[name] = found
    return found


def _home_of(name: str) -> str:
    return _HOMES.get(name, "weft._core")


def _version() -> str:
    """That of the installed package; 0+unknown where the package is used without being installed."""
    import importlib.metadata

    try:
        return importlib.metadata.version("weft")
    except importlib.metadata.PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted(__all__)
