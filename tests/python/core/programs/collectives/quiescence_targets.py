"""weft.quiescence(target). Prints "all checked"."""

from __future__ import annotations

from typing import Any

import weft


class Node(weft.Chare):
    def __init__(self) -> None:
        self.visits = 0
        self.seen: list[tuple[Any, ...]] = []

    def visit(self, steps: int) -> None:
        self.visits += 1
        if steps > 0:
            self.proxy[(2 * self.index) % 8].visit(steps - 1)
            self.proxy[(2 * self.index + 1) % 8].visit(steps - 1)

    def idle(self, *words: str) -> None:
        self.seen.append((self.visits, *words))

    def ask(self, word: str, done: weft.Future[str]) -> None:
        weft.quiescence(target=self.proxy[0].tell.bind(word, done))

    def tell(self, word: str, done: weft.Future[str]) -> None:
        done.set(word)

    def go_when_idle(self, to_pe: int) -> None:
        self.seen.append((to_pe,))
        self.migrate(to_pe)

    def log(self) -> tuple[int, list[tuple[Any, ...]]]:
        seen, self.seen = self.seen, []
        return self.visits, seen


async def main() -> None:
    nodes = weft.Array(Node, 8)
    done: weft.Future[None] = weft.Future()
    nodes[0].visit(7)
    assert weft.quiescence(done) is None  # type: ignore[func-returns-value]
    weft.quiescence(nodes[3].idle)
    weft.quiescence(nodes.idle)
    weft.quiescence(nodes[::4].idle.bind("some"))
    weft.quiescence(nodes.idle.bind("all", "words"))
    assert not done.done()
    assert await done is None
    await weft.quiescence()
    logs = await nodes.log.call()
    assert sum(visits for visits, _ in logs) == 255
    for i, (visits, seen) in enumerate(logs):
        expected = [(visits,), (visits, "all", "words")]
        expected += [(visits,)] if i == 3 else []
        expected += [(visits, "some")] if i % 4 == 0 else []
        assert sorted(seen) == sorted(expected), (i, seen)
    told: weft.Future[str] = weft.Future()
    nodes[7].ask("from afar", told)
    assert await told == "from afar"
    for round in range(6):
        weft.quiescence(nodes.go_when_idle.bind(round % weft.num_pes()))
        await weft.quiescence()
        await weft.quiescence()
        assert [seen for _, seen in await nodes.log.call()] == [[(round % weft.num_pes(),)]] * 8
    for wrong in (nodes[0], 5, "idle", nodes[0].idle.call):
        try:
            weft.quiescence(wrong)  # type: ignore[call-overload]
        except weft.Error as error:
            assert "a target is a weft.Future or an entry method" in str(error), error
        else:
            raise AssertionError(wrong)
    print("all checked")


weft.run(main)
