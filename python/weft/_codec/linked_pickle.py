"""Pickles of whole values whose objects refer to one another (python/src/codec/linked_pickle.h)."""

from __future__ import annotations

import io
import pickle

from weft import _core


class _Pickler(pickle.Pickler):
    # A function of the extension, which gets the object alone: a part beside the pickle, or NotImplemented.
    reducer_override = staticmethod(_core._pickle_part)


def dumps(value: object, buffers: list[pickle.PickleBuffer]) -> bytes:
    """The pickle of a value; appends the memory that it leaves out."""
    file = io.BytesIO()
    _Pickler(file, protocol=5, buffer_callback=buffers.append).dump(value)
    return file.getvalue()
