"""Objects that stand for elements in the memory of many PEs: uses that need the values are refused."""

from __future__ import annotations

from typing import NoReturn


class Elsewhere:
    """Raises TypeError for assignments, conversions and operators, which cannot wait for other PEs."""

    __slots__ = ()

    def _refuse(self, *_others: object, **_options: object) -> NoReturn:
        raise TypeError(
            f"{self} holds no values here: its elements are in the memory of many PEs, and an index only "
            "names a part. Read with `await array.get(key)`, write with `await array.put(key, values)`, copy "
            "a part with `await weft.pgas.copy(array[key], to)`. `array.local` is the rows of this PE"
        )

    __setitem__ = __delitem__ = __iter__ = _refuse
    __array__ = __float__ = __int__ = __neg__ = __abs__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _refuse
    __matmul__ = __rmatmul__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
