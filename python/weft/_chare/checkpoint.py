"""Checkpoints: chares and values of the program in files, from which a later job goes on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from weft import _core


def has_checkpoint(folder: str | os.PathLike[str]) -> bool:
    """Whether the folder has a checkpoint whose manifest is whole and whose files have the right sizes.

    Reads the values of the checkpoint and no chares, and needs no job. Call it on the PE that calls
    weft.restore, as a rule in main.

    Args:
        folder: the folder that was given to weft.checkpoint.

    Raises:
        weft.Error: the folder cannot be read.
    """
    return _core._has_checkpoint(os.fsencode(folder))


def checkpoint(folder: str | os.PathLike[str], values: Mapping[str, Any]) -> _core.Future[None]:
    """Saves the values, and the chares of all collections of which they have a proxy.

    ``await weft.checkpoint("results", {"cells": cells, "step": 7})``. It writes FOLDER/checkpoint-N and
    keeps the one before. The values are taken in the call. Then quiescence is awaited, and each PE writes the
    state of its chares, as for a move, while it runs nothing else. Call it on one PE, and call no
    chare before it has ended. After an error the job goes on, and earlier checkpoints are as they were.

    Args:
        folder: on a file system that all PEs see. It is made if there is none. Each job needs its own.
        values: proxies of the collections to save, and whatever the program needs to go on. Proxies in the
            states of chares must be of these collections.

    Returns:
        weft.Future: set to None when all is on the disk. It fails with weft.Error if

            - a chare cannot be saved: an entry method of it waits, it waits at a sync point, it has channels
              or a future, its state cannot be pickled, or it has a proxy of another collection;
            - some chares of a collection have contributed to a reduction and others have not;
            - chares were called meanwhile;
            - a file cannot be written, or another checkpoint is being written into the folder.

        An error that nothing awaits ends the job.

    Raises:
        weft.Error: a value cannot be saved, or a collection among them has been destroyed.
    """
    return _core._checkpoint(os.fsencode(folder), dict(values))


async def restore(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Makes the collections of the newest whole checkpoint anew, and returns the values with their proxies.

    Call it on one PE. The number of PEs may differ from that of the job that has saved: each chare is made
    where the map of its collection puts it. A map that was a function holds for as many PEs as before, and
    becomes 'block' on others; a group needs as many PEs as before. ``migrated()`` runs on each chare. A
    damaged checkpoint is refused with its file named on standard error, and the one before is read.

    Args:
        folder: the folder that was given to weft.checkpoint.

    Returns:
        dict: the values of the checkpoint.

    Raises:
        weft.Error: no checkpoint of the folder is whole, or this program cannot read it: a class is
            missing or has other entry methods. Nothing is made then.
    """
    done, number = _core._restore(os.fsencode(folder))
    await done
    values: dict[str, Any] = _core._restored_values(number)
    return values
