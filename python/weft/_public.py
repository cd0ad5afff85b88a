"""Public classes and functions say in ``__module__`` from which module programs import them.

Pickles, reprs and the documentation then do not depend on the private module that has the code.
"""

from __future__ import annotations

from collections.abc import Iterable


def name_public_module(module: str, objects: Iterable[object]) -> None:
    """States that `module` has these objects. An object of any module that is not private stays as it is."""
    for one in objects:
        if (getattr(one, "__module__", None) or "").startswith("weft._"):
            one.__module__ = module
            if isinstance(one, type):
                members = vars(one).values()
                name_public_module(module, members)
                # The functions of static methods, class methods and properties.
                name_public_module(module, [getattr(member, "__func__", None) for member in members])
                name_public_module(module, [getattr(member, "fget", None) for member in members])
