"""weft.post_entry: which method says where the arrays of a call land."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_MARK = "__weft_post_entry__"  # kPostMark of python/src/chare/classes/classes.cpp

_F = TypeVar("_F", bound=Callable[..., Any])


def post_entry(name: str) -> Callable[[_F], _F]:
    """Marks a method of a chare as the post entry method of another one.

    It runs when a call of that entry method arrives. It gets the same arguments, with a weft.ReceiveBuffer in
    the place of each array: ``buffer.into(array)`` says where that lands. The memory must hold all that
    comes, and must have its element type or be plain bytes. Without a chosen place an array lands in new
    memory. The entry method runs when all arrays have landed, and gets the objects that were chosen.

    The arrays of such calls are always sent in place. An empty array is not: the method gets it as it is, and
    a call without other arrays does not run the post entry method.

        class Block(weft.Chare):
            @weft.post_entry("halo")
            def post_halo(self, halo, side):
                halo.into(self.halos[side])

            def halo(self, halo, side):  # `halo` is self.halos[side], filled
                ...

    Args:
        name: the name of the entry method, in the same class.

    The post entry method is an ordinary function, not a coroutine, and not an entry method itself. If it
    raises an exception, the caller gets it, and the entry method does not run.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"weft.post_entry takes the name of an entry method, as in @weft.post_entry('halo'), not {name!r}"
        )

    def mark(function: _F) -> _F:
        setattr(function, _MARK, name)
        return function

    return mark
