"""Recovery in memory: what a job protects there, and gets back when it has lost PEs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from weft import _core
from weft._chare.checkpoint import has_checkpoint, restore


def protect(values: Mapping[str, Any]) -> _core.Future[None]:
    """Keeps the values, and the chares of all collections of which they have a proxy, in memory.

    ``await weft.protect({"cells": cells, "step": 7})``. Each PE keeps the state of its chares, and another
    PE, its buddy, keeps a copy. The state protected before stays until the new one is complete on all PEs.
    In all other ways it is weft.checkpoint: when it can be called, what is saved, and what is refused.

    It does nothing in a job that cannot begin again (``weft run --on-loss restart`` or ``shrink`` can).

    Args:
        values: proxies of the collections to protect, and whatever main needs to go on. Each PE has a copy.

    Returns:
        weft.Future: set to None when all PEs have the state. It fails with weft.Error as weft.checkpoint
        does. An error that nothing awaits ends the job.

    Raises:
        weft.Error: a value cannot be saved, a collection among them has been destroyed, or another call is
            under way.
    """
    return _core._protect(dict(values))


async def recovered(folder: str | os.PathLike[str] | None = None) -> dict[str, Any] | None:
    """What weft.protect has kept, when the job has begun again. For the begin of main.

    The collections are made anew, each chare where the map of its collection puts it, and ``migrated()``
    runs on each chare.

    Args:
        folder: that of weft.checkpoint, if the program has checkpoints. The newest of them is restored if a
            PE was lost together with the one that kept its copy.

    Returns:
        dict: the values, with proxies of the new collections. None if there is nothing to recover: the job
        has not begun again, or it had protected nothing before.

    Raises:
        weft.Error: a PE was lost together with the one that kept its copy, and `folder` has no checkpoint; or
            a chare could not be made anew.
    """
    done, number = _core._recover()
    try:
        await done
    except _core.Error as error:
        if error.code != "not found" or folder is None or not has_checkpoint(folder):
            raise
        return await restore(folder)
    values: dict[str, Any] | None = _core._restored_values(number)
    return values


def resize(num_pes: int) -> _core.Future[None]:
    """Asks for another number of PEs, from the next ``weft.protect`` that is complete on.

    ``await weft.resize(6)``. That ``weft.protect`` does not return: ``main`` begins again on the new number
    of PEs, and ``weft.recovered()`` gives what was protected. New PEs are processes that begin with the
    program's first line. PEs with the highest numbers leave: their ``weft.run`` raises SystemExit(0).

    Args:
        num_pes: how many PEs the job shall have, at least 1.

    Returns:
        weft.Future: set to None when ``weft run`` has accepted it. It fails with weft.Error if ``weft run``
        refuses it, as when another resize is under way. An error that nothing awaits ends the job.

    Raises:
        weft.Error: the job was not started by ``weft run --on-loss restart`` or ``--on-loss shrink``, or
            `num_pes` is less than 1.
    """
    return _core._resize(num_pes)


def recoveries() -> int:
    """How often main has begun again, because PEs were lost or the job got another number of them.

    Raises:
        weft.Error: no job is running.
    """
    return _core._recoveries()


def revive(element: _core.ElementProxy[Any]) -> _core.Future[None]:
    """Makes a chare anew that was lost with its PE: an element of an array, or a single chare.

    ``await weft.revive(workers[3])``. Its constructor runs with the arguments of its collection, on the next
    PE that is not lost; the state of the lost chare is gone. Any PE may call it, one of them for each chare.
    Calls that wait for it afterwards, from all PEs, find the new chare.

    Args:
        element: the proxy of the lost chare.

    Returns:
        weft.Future: set to None when the constructor has returned. It fails with its exception, and with
        weft.Error if the chare is not lost. An error that nothing awaits ends the job.

    Raises:
        weft.Error: the job does not outlive losses (``weft run --on-loss raise``), the chare is one of a
            group, which has one on each PE, or the collection has been destroyed.
    """
    return element._revive()
