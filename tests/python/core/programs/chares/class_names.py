"""Chare classes that cannot be: with names of the runtime's, and abstract ones; checks itself."""

import abc
from typing import ClassVar

from refusing import refused

import weft


def make(name, value, *bases):
    return type("Made", (*bases, weft.Chare), {name: value})


class Mixin:
    def migrate(self):
        """Not the runtime's."""


class Shape(weft.Chare, abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    @property
    @abc.abstractmethod
    def side(self): ...

    def hello(self):
        return "hello"


class Square(Shape):
    side = 2

    def area(self):
        return self.side**2


class Hooked(weft.Chare):
    balance_periodically = False

    def created(self):
        self.was_created = True

    def migrated(self):
        pass

    def is_created(self):
        return self.was_created


class Registered(weft.Chare):
    """With an __init_subclass__ of its own, and arguments of it."""

    names: ClassVar[list[str]] = []

    def __init_subclass__(cls, name="none", **kwargs):
        super().__init_subclass__(**kwargs)
        cls.names.append(name)


class Named(Registered, name="named"):
    shape = (2, 3)  # a proxy's name, and no method


class Unmarked(weft.Chare):
    """Abstract without abc.ABC."""

    @abc.abstractmethod
    def area(self): ...


class Later(weft.Chare):
    pass


async def main():
    shapes = weft.Array(Square, 2)
    assert await shapes.area.call() == [4, 4] and await shapes[0].hello.call() == "hello"
    for make_collection in (lambda shape: weft.Array(shape, 2), weft.Group, weft.Singleton):
        refused("Shape is abstract", make_collection, Shape)
        refused("area, side", make_collection, Shape)
    assert await weft.Array(Hooked, 2).is_created.call() == [True, True]
    refused("Unmarked is abstract, so it has no chares: nothing defines area", weft.Group, Unmarked)
    assert weft.Array(Named, 1).shape == (1,)
    Later.pinned = lambda self: 1  # after the class was made
    refused("defines pinned", weft.Array, Later, 1)
    return "all checked"


def check_names():
    names = ["index", "proxy", "pinned", "load_s", "device_load_s", "contribute", "allreduce", "migrate"]
    for name in [*names, "at_sync", "set_load_s", "remove_self", "device_work"]:
        for value in (lambda self: 1, property(lambda self: 1), 5):
            refused(f"the class Made defines {name}", make, name, value)
    refused("the class Made defines migrate", type, "Made", (Mixin, weft.Chare), {})
    for name in ["collection", "with_priority", "remove", "shape", "section", "split", "destroy", "insert"]:
        refused(f"the class Made defines a method {name}, but `proxy.{name}`", make, name, lambda self: 1)
    for name in ("done_inserting", "indices", "parts"):
        refused(f"the class Made defines a method {name}", make, name, lambda self: 1)
    type("Made", (weft.Chare, Mixin), {})  # weft.Chare's is found first
    for name in ("created", "migrated", "resume_from_sync"):
        make(name, lambda self: None)
        make(name, lambda self, loud=False: None)
        refused(f"the class Made defines {name} with parameters", make, name, lambda self, x: None)
        refused(f"the class Made defines {name} with parameters", make, name, lambda self, *x: None)
    assert Registered.names == ["named"]


check_names()
result = weft.run(main)
if result is not None:
    print(result)
