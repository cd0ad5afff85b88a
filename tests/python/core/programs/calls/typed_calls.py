"""What mypy says of calls with the plugin weft.mypy: the errors in the comments, and no others."""

from __future__ import annotations

from typing import TypeVar, overload

import numpy as np
from typing_extensions import assert_type

import weft

T = TypeVar("T")


class Base(weft.Chare):
    limit = 3

    def __init__(self, name: str, scale: float = 1.0) -> None:
        self.name = name

    def scaled(self, value: int, unit: str = "m", *more: int, loud: bool = False) -> float:
        self.proxy[0].scaled(value, "s")
        self.proxy[0].rename(3)  # E: no entry method "rename"
        assert_type(self.scaled(1), float)
        return float(value)

    async def names(self) -> list[str]:
        return [self.name]

    @weft.when(lambda self, value: value > 0)
    def guarded(self, value: int) -> str:
        return str(value)

    @staticmethod
    def fixed(value: int) -> int:
        return value

    def generic(self, value: T) -> T:
        return value

    @overload
    def either(self, value: int) -> int: ...
    @overload
    def either(self, value: str) -> str: ...
    def either(self, value: int | str) -> int | str:
        return value

    @weft.post_entry("store")
    def post_store(self, array: weft.ReceiveBuffer) -> None:
        array.into(np.zeros(3))

    def store(self, array: weft.DeviceArray) -> None: ...

    def _private(self) -> None: ...


class Derived(Base):
    def paint(self) -> None: ...


async def use(
    base: weft.ElementProxy[Base], open_proxy: weft.ElementProxy, method: weft.EntryMethod[[int], float]
) -> None:
    assert_type(await base.scaled.call(1), float)
    await open_proxy.anything.call(1, 2, name=3)
    assert_type(await method.call(1), float)
    await method.call("1")  # E: Argument 1 to "call" of "EntryMethod" has incompatible type "str"


async def main() -> None:
    cells = weft.Array(Derived, 2, args=("a",))
    assert_type(cells, weft.Array[Derived])
    cell = cells[0]
    assert_type(cell, weft.ElementProxy[Derived])
    assert_type(await cells, weft.Array[Derived])
    assert_type(cells[0:2], weft.Section[Derived])
    assert_type(cell.collection, weft.CollectionProxy[Derived])
    assert_type(weft.Singleton(Derived, args=("a",)), weft.ElementProxy[Derived])

    assert_type(await cell.scaled.call(1), float)
    assert_type(await cell.names.call(), list[str])
    assert_type(await cell.guarded.call(value=1), str)
    assert_type(await cell.paint.call(), None)
    assert_type(await cells.scaled.call(1, "s", 2, 3, loud=True), list[float])
    assert_type(await cells[0:2].names.call(), list[list[str]])
    assert_type(cell.scaled.send(1), weft.Operation[None])
    assert_type(await cell.scaled.bind(1).call(), float)
    assert_type(await cell.fixed.call(1), int)
    await cell.generic.call(1)
    await cell.either.call(1)
    for each in weft.Group(Base, ("a", 2.0)):
        each.scaled(1)
    await use(cell, cell, cell.scaled)

    cell.scaled("1")  # E: Argument 1 to "__call__" of "EntryMethod" has incompatible type "str"
    await cell.scaled.call()  # E: Missing positional argument "value" in call to "call" of "EntryMethod"
    cells.scaled.send(1, size=2)  # E: Unexpected keyword argument "size"
    text: str = await cell.scaled.call(1)  # E: expression has type "float", variable has type "str"
    await cell.nothing.call(text)  # E: The chare class "Derived" has no entry method "nothing"
    cells.nothing(text)  # E: The chare class "Derived" has no entry method "nothing"
    cell._private()  # E: names with an underscore are private
    cell.limit()  # E: "limit" of the chare class "Derived" is no method
    cell.migrate(1)  # E: "migrate" is a name of weft.Chare and no entry method
    cell.post_store(1)  # E: "post_store" is a post entry method
    weft.Array(Base, 2)  # E: Too few arguments for "Base"
    weft.Array(Base, 2, args=(3,))  # E: Argument 1 to "Base" has incompatible type "int"
    weft.Group(Base, ["a", 1.0, 2])  # E: Too many arguments for "Base"
    sparse = weft.Array(Base, sparse=True)
    await sparse.insert(0, "a", pe=1)
    await sparse.insert(0, 5)  # E: Argument 1 to "Base" has incompatible type "int"


weft.run(main)
