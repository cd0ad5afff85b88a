"""Pickles of objects of a job name public modules only. Prints "all checked"."""

from __future__ import annotations

import pickle
import pickletools
from typing import Any

import weft
import weft.pgas


class Part(weft.Chare):
    def __init__(self) -> None:
        self.held: Any = None

    def hold(self, value: Any) -> str:
        self.held = value
        return type(value).__name__

    def own_state(self) -> bytes:
        """What a checkpoint has of a chare that names itself and a device array."""
        from weft._chare.migration import pack_state

        self.held = [self, weft.DeviceArray(3, "int32", "emulated")]
        return pack_state(self)[0]


def names_of(pickled: bytes) -> list[str]:
    return [value for _, value, _ in pickletools.genops(pickled) if isinstance(value, str)]


async def main() -> None:
    parts = weft.Array(Part, 4)
    array = await weft.pgas.make_array(8, team=None) if weft.num_pes() == 1 else None
    segment = weft.pgas.make_segment(4, "int64")
    async with weft.Pool() as pool:
        for value in (
            parts,
            parts[1],
            parts.section([0, 2]),
            parts[1].hold,
            parts[1].hold.bind(3),
            weft.Future(),
            segment.pointer(),
            pool,
            *([] if array is None else [array]),
        ):
            names = names_of(pickle.dumps(value))
            assert not [name for name in names if name.startswith("weft._")], names
            assert type(pickle.loads(pickle.dumps(value))) is type(value)
            assert await parts[1].hold.call([value, value]) == "list"
    names = names_of(await parts[0].own_state.call())
    assert "weft" in names and not [name for name in names if name.startswith("weft._")], names
    print("all checked")


weft.run(main)
