"""What Jedi completes where proxies are values, as in a notebook; checks itself."""

import jedi

import weft


class Cell(weft.Chare):
    def put(self, value):
        pass


def completions(code, **names):
    return {name.name for name in jedi.Interpreter(code, [names]).complete()}


async def main():
    cells = weft.Array(Cell, 2)
    assert completions("cells.", cells=cells) >= {"put", "created", "section"}
    assert completions("cell.", cell=cells[0]) >= {"put", "collection", "index"}
    assert completions("section.pu", section=cells[0:2]) == {"put"}
    assert completions("cells.put.", cells=cells) >= {"bind", "call", "send"}
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
