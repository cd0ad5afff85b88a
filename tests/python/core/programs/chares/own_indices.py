"""Indices of a type of the program: in the chare, in proxies, maps and sections."""

import typing

import weft


class Patch(typing.NamedTuple):
    level: int
    x: int
    y: int

    def parent(self):
        return Patch(self.level - 1, self.x // 2, self.y // 2)


class Key:
    """For one dimension."""

    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number

    def __eq__(self, other):
        return self.number == other.number

    __hash__ = None


class Block(weft.Chare):
    index_type = Patch

    def __init__(self, text=""):
        self.text = text + str(self.index.parent())

    def describe(self):
        return self.index, self.text

    def own(self):
        return self.proxy[self.index].index


class Slot(weft.Chare):
    index_type = Key

    def number(self):
        return self.index.number


class Unfit(weft.Chare):
    index_type = dict


class Plain(weft.Chare):
    index_type = None

    def own(self):
        return self.index


def by_level(index):
    return index.level % weft.num_pes()


async def main():
    blocks = weft.Array(Block, (8, 128, 128), sparse=True)
    inserted = [Patch(1, 1, 0), Patch(level=2, x=3, y=1)]
    for patch in inserted:
        await blocks.insert(patch, "child of ")
    await blocks.done_inserting()
    assert await blocks.describe.call() == [(p, f"child of {p.parent()}") for p in inserted]
    index, _ = await blocks[inserted[1]].describe.call()
    assert type(index) is Patch
    assert type(await blocks[1, 1, 0].own.call()) is Patch
    assert repr(blocks[inserted[0]]) == "<weft.ElementProxy Block[Patch(level=1, x=1, y=0)]>"
    section = blocks.section(inserted)
    assert section[1].index == inserted[1]
    assert inserted[0] in section
    assert await section.describe.call() == await blocks.describe.call()

    dense = weft.Array(Block, (2, 2, 2), map=by_level)
    assert dense.section(lambda index: index.level == 1 and index.x == 0)[1].index == Patch(1, 0, 1)
    assert {element.index.level for element in dense} == {0, 1}

    slots = weft.Array(Slot, 4)
    assert await slots[Key(2)].number.call() == 2
    assert slots[3].index == Key(3)
    assert await weft.Array(Plain, 2).own.call() == [0, 1]

    try:
        weft.Array(Unfit, 3)
    except weft.Error as error:
        assert "Unfit.index_type is <class 'dict'>: it must be a tuple class" in str(error)
    else:
        raise AssertionError("it was not refused")


weft.run(main)
